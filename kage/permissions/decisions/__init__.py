"""The decision log: written, chained, proven, asked and explained."""
