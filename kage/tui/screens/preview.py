"""What a server made of a prompt, before it is sent: every message with its role and parts."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from kage.core.attachments import attached
from kage.core.content import Resource, Text
from kage.core.offers import FilledPrompt, PromptMessage
from kage.core.sanitise import visible
from kage.tui.keymap import Context, Keymap
from kage.tui.screens.help import scrolled
from kage.tui.text import MUTED, shown
from kage.tui.widgets.rows import Row, Rows, RowsView, Span, row

_MAX_LINES = 5_000  # of one part; the rest is counted


class PreviewScreen(ModalScreen[bool]):
    """Shows a filled prompt; gives True to send it, False to go back to the draft."""

    AUTO_FOCUS = "RowsView"

    def __init__(self, filled: FilledPrompt, keymap: Keymap, *, name: str) -> None:
        super().__init__()
        self._filled = filled
        self._keymap = keymap
        self._line = name

    def compose(self) -> ComposeResult:
        """Make the parts."""
        take, close = self._keymap.key("list_take"), self._keymap.key("close")
        with Vertical(classes="sheet"):
            title = Content.styled(shown(self._line, 100), "bold $accent")
            yield Static(title, classes="sheet-title")
            yield RowsView(id="preview-text")
            words = f"{take} sends this as your message · {close} goes back"
            yield Static(Content.styled(words, MUTED), classes="sheet-note")

    def on_mount(self) -> None:
        """Fill in the messages."""
        self.query_one(RowsView).show(_rows(self._filled))

    def on_key(self, event: events.Key) -> None:
        """Send, go back, or scroll."""
        event.stop()
        event.prevent_default()
        action = self._keymap.find(Context.LIST, event.key)
        if action in ("list_take", "close"):
            self.dismiss(action == "list_take")
            return
        scrolled(self.query_one(RowsView), action)


def _rows(filled: FilledPrompt) -> Rows:
    rows: list[Row] = []
    if filled.description:
        rows += [row(Span(shown(filled.description, 500), "muted"), words=True), row("")]
    for message in filled.messages:
        rows += [row(Span(_role(message), "strong")), *_parts(message), row("")]
    return tuple(rows) or (row(Span("the prompt is empty", "warning")),)


def _role(message: PromptMessage) -> str:
    if message.role == "assistant":
        return "as the model (it is told so, in your message)"
    return "as you"


def _parts(message: PromptMessage) -> list[Row]:
    rows: list[Row] = []
    for part in message.content:
        if not isinstance(part, Text):
            rows += [row(Span(f"+ {shown(line, 300)}", "key")) for line in attached((part,))]
        text = part.text if isinstance(part, Text | Resource) else None
        lines = visible(text or "", single_line=False).split("\n") if text else []
        rows += [row(line, hang="  ", words=True) for line in lines[:_MAX_LINES]]
        if len(lines) > _MAX_LINES:
            rows.append(row(Span(f"… {len(lines) - _MAX_LINES:,} more lines", "muted")))
    return rows
