"""What the chat screen is made of; each widget gets data in and posts messages out."""
