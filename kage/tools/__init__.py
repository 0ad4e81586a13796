"""The eight built-in tools and the registry."""
