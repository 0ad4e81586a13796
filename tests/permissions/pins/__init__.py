"""Tests of definition pins."""
