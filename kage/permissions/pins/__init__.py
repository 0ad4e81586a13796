"""Definition pins: what a server offers against what the person knows of it."""
