"""Tests of the decision log."""
