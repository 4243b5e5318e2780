"""The routes, a subject a file."""
