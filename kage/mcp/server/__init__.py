"""The server half: kage's own tools for any other agent."""
