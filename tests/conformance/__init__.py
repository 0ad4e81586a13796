"""The official MCP conformance suite against kage; see docs/conformance.md."""
