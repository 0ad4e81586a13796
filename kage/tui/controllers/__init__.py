"""Fold events, put questions, carry out commands: everything between host and widgets."""
