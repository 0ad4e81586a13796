"""The words every part shares: messages, events, commands, errors. Standard library only."""
