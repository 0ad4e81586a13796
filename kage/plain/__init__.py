"""Front ends without a screen: text and JSON lines."""
