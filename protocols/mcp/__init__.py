"""An MCP server, through which agents use the studio: tools over the HTTP API, over HTTP at /mcp and over stdio."""
