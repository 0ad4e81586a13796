"""Tests of both halves of the protocol."""
