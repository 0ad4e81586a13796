"""Tests of the conversation on screen."""
