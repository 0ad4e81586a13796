"""Tests of the client half."""
