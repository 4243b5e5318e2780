"""The Projects area, in a browser."""
