"""Models behind one streaming interface."""
