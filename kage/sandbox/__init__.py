"""Keeping the agent's shell and servers to the places where they have business."""
