"""Models behind one interface: wire formats, errors, choice."""
