"""MCP's own client against the real app."""
