"""The routes, one subject per file."""
