"""kage's tests, one folder a room; ``python -m tests`` runs everything."""
