"""Benchmarks: scripts that print figures and never fail on time."""
