"""The client half: connections to MCP servers."""
