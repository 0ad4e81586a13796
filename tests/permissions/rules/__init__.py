"""Tests of the rules: how they are read, what they say."""
