"""Tests of kage.cli."""
