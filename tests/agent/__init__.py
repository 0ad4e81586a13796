"""Tests of kage.agent."""
