"""The engine and the loop."""
