"""How the page's files are served; what they do is tested in tests/browser."""
