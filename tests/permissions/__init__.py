"""Tests of the gate and its parts."""
