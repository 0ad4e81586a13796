"""The Model Context Protocol, both halves."""
