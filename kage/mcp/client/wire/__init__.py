"""What every message of a connection passes, both ways."""
