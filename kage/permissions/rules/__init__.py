"""Permission rules: how they are read, and what they say about a call."""
