"""The studio's port, its HTTP server, and the filter of its log."""
