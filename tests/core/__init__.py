"""Tests of the shared words and small functions."""
