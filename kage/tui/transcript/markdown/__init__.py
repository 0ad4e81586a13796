"""Streamed markdown: cut into blocks, parse one block, lay it out as lines."""
