"""Tests of looking at a workspace."""
