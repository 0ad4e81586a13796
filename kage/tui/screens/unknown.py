"""What to do about a call nobody knows the outcome of: check, retry, or leave it."""

from __future__ import annotations

import json

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from kage.core.content import as_text
from kage.core.sanitise import visible
from kage.core.unsettled import Unsettled
from kage.tui.keymap import Context, Keymap
from kage.tui.text import MUTED, shown
from kage.tui.widgets.rows import Row, Rows, RowsView, Span, row

_MAX_ARGUMENTS = 20_000  # characters drawn
_MAX_TOLD = 300  # of the arguments, in the prompt


class UnknownScreen(ModalScreen[str]):
    """Shows the call; gives "check", "retry" or "leave"."""

    AUTO_FOCUS = "RowsView"

    def __init__(self, item: Unsettled, keymap: Keymap) -> None:
        super().__init__()
        self.item = item
        self._keymap = keymap

    def compose(self) -> ComposeResult:
        """Make the parts."""
        key = self._keymap.key
        retry = f" · {key('unknown_retry')} retry" if not self.item.obstacle else ""
        with Vertical(classes="sheet"):
            title = f"Outcome unknown: {shown(self.item.call.name, 80)}"
            yield Static(Content.styled(title, "bold $accent"), classes="sheet-title")
            yield RowsView()
            words = f"{key('unknown_check')} check{retry} · {key('unknown_leave')} leave"
            yield Static(Content.styled(words, MUTED), classes="sheet-note")

    def on_mount(self) -> None:
        """Fill in the call."""
        self.query_one(RowsView).show(unknown_rows(self.item, self._keymap))

    def on_key(self, event: events.Key) -> None:
        """Take the choice, or scroll; any other key does nothing."""
        event.stop()
        event.prevent_default()
        action = self._keymap.find(Context.UNKNOWN, event.key, event.character)
        view = self.query_one(RowsView)
        match action:
            case "unknown_retry" if not self.item.obstacle:
                self.dismiss("retry")
            case "unknown_check":
                self.dismiss("check")
            case "unknown_leave":
                self.dismiss("leave")
            case "unknown_up":
                view.scroll_up(animate=False)
            case "unknown_down":
                view.scroll_down(animate=False)


def unknown_rows(item: Unsettled, keymap: Keymap) -> Rows:
    """Give what the screen says: the choices first, then the call and how it went."""
    retry = "asks you again about the same call, and sends it a second time"
    if item.obstacle:
        retry = f"not possible: {item.obstacle}"
    rows: list[Row] = [
        _choice(keymap.key("unknown_check"), "check", "writes a prompt: look with a reading tool"),
        _choice(keymap.key("unknown_retry"), "retry", retry),
        _choice(keymap.key("unknown_leave"), "leave", "changes nothing; this can be opened again"),
        row(""),
        row(Span("what was sent", "strong")),
    ]
    arguments = json.dumps(item.call.arguments, indent=2, ensure_ascii=False)
    rows += _lines(arguments[:_MAX_ARGUMENTS])
    if len(arguments) > _MAX_ARGUMENTS:
        rows.append(row(Span(f"… and {len(arguments) - _MAX_ARGUMENTS:,} characters", "muted")))
    rows += [row(""), row(Span("how it ended", "strong"))]
    return tuple(rows + _lines(as_text(item.result.content)[:2_000], words=True))


def check_prompt(item: Unsettled) -> str:
    """Give the prompt that has the outcome looked up without acting again."""
    arguments = json.dumps(item.call.arguments, ensure_ascii=False)
    return (
        f"It is unknown whether the call of {shown(item.call.name, 80)} with "
        f"{shown(arguments, _MAX_TOLD)} acted. Find out with a tool that only reads and tell me; "
        "do not make the call again."
    )


def _choice(key: str, name: str, words: str) -> Row:
    return row(Span(f"{key:<4}", "key"), f"{name:<7}", Span(words, "muted"), hang=" " * 11)


def _lines(text: str, *, words: bool = False) -> list[Row]:
    return [row(line, hang="  ", words=words) for line in visible(text).rstrip("\n").split("\n")]
