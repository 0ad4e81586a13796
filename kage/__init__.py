"""kage, a bidirectional MCP host with a terminal UI."""

__version__ = "0.1.0"
