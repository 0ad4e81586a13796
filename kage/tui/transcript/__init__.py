"""The conversation on screen: a model that knows no Textual, and one view that draws it."""
