"""Tests of kage.plain."""
