"""The whole of one call on the full screen: nothing folded, nothing left out."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from kage.core.gate import Question
from kage.tui.keymap import Context, Keymap
from kage.tui.screens.help import scrolled
from kage.tui.text import MUTED
from kage.tui.widgets.question import details
from kage.tui.widgets.rows import RowsView


class DetailsScreen(ModalScreen[None]):
    """Shows a question; answers are given in the panel only."""

    def __init__(self, question: Question, keymap: Keymap) -> None:
        super().__init__()
        self.question = question
        self._keymap = keymap

    def compose(self) -> ComposeResult:
        """Make the parts."""
        with Vertical(classes="sheet"):
            yield Static(Content.styled("The whole call", "bold $accent"), classes="sheet-title")
            yield RowsView(id="details-text")
            yield Static(
                Content.styled("esc goes back to the question; answers are given there", MUTED),
                classes="sheet-note",
            )

    def on_mount(self) -> None:
        """Fill in the text."""
        self.query_one(RowsView).show(details(self.question))

    def on_key(self, event: events.Key) -> None:
        """Scroll, or close; no key here answers."""
        event.stop()
        if self._keymap.find(Context.DETAILS, event.key) is not None:
            self.dismiss(None)
            return
        scrolled(self.query_one(RowsView), self._keymap.find(Context.LIST, event.key))
