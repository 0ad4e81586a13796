"""Tests of kage.sessions."""
