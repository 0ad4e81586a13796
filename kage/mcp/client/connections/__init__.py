"""One live connection to one server: how it begins, what it is, why it ended."""
