"""A list to choose one entry from, with a line to filter it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from kage.tui.controllers.completion import score
from kage.tui.keymap import Context, Keymap
from kage.tui.text import MUTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing to choose: what is drawn, what the filter looks at, what choosing it gives."""

    value: str
    line: Content
    words: str


class Picker(ModalScreen[str | None]):
    """Shows entries as they come in; gives the chosen value, None when closed."""

    AUTO_FOCUS = "Input"

    def __init__(self, *, title: str, empty: str, keymap: Keymap, chosen: str = "") -> None:
        super().__init__()
        self._title = title
        self._empty = empty
        self._keymap = keymap
        self._chosen = chosen
        self._entries: tuple[Entry, ...] | None = None
        self._matching: tuple[Entry, ...] = ()
        self.on_opened: Callable[[Picker], None] | None = None

    def compose(self) -> ComposeResult:
        """Make the parts."""
        with Vertical(classes="sheet"):
            yield Static(Content.styled(self._title, "bold $accent"), classes="sheet-title")
            yield Input(placeholder="type to filter")
            yield OptionList()
            yield Static(classes="sheet-note")

    def on_mount(self) -> None:
        """Ask for the entries."""
        self._note("asking …")
        if self.on_opened is not None:
            self.on_opened(self)

    def fill(self, entries: tuple[Entry, ...]) -> None:
        """Show what there is to choose from."""
        self._entries = entries
        self._filter(self.query_one(Input).value)

    def fail(self, reason: str) -> None:
        """Say why there is nothing to choose from; ``reason`` is safe to show."""
        self._entries = ()
        self._filter("")
        self._note(reason)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter by what was typed."""
        event.stop()
        self._filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the marked entry."""
        event.stop()
        self._take()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take the clicked entry."""
        event.stop()
        self._take()

    def on_key(self, event: events.Key) -> None:
        """Move in the list while the cursor stays in the filter."""
        options = self.query_one(OptionList)
        match self._keymap.find(Context.LIST, event.key):
            case "close":
                self.dismiss(None)
            case "list_up":
                options.action_cursor_up()
            case "list_down":
                options.action_cursor_down()
            case "list_page_up":
                options.action_page_up()  # type: ignore[no-untyped-call]  # Textual's is untyped
            case "list_page_down":
                options.action_page_down()  # type: ignore[no-untyped-call]
            case "list_take":
                self._take()
            case _:
                return
        event.stop()
        event.prevent_default()

    def _take(self) -> None:
        index = self.query_one(OptionList).highlighted
        if index is not None and index < len(self._matching):
            self.dismiss(self._matching[index].value)

    def _filter(self, pattern: str) -> None:
        if self._entries is None:
            return
        scored = [(score(pattern, entry.words), entry) for entry in self._entries]
        found = [(points, entry) for points, entry in scored if points is not None]
        if pattern:
            found.sort(key=lambda item: -item[0])
        self._matching = tuple(entry for _, entry in found)
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(entry.line) for entry in self._matching])
        if self._matching:
            values = [entry.value for entry in self._matching]
            at = values.index(self._chosen) if not pattern and self._chosen in values else 0
            options.highlighted = at
        self._note(self._count() if self._entries else self._empty)

    def _count(self) -> str:
        shown, known = len(self._matching), len(self._entries or ())
        if not shown:
            return f"none of {known} matches · esc closes"
        return f"{shown} of {known} · enter takes it, esc closes"

    def _note(self, text: str) -> None:
        self.query_one(".sheet-note", Static).update(Content.styled(text, MUTED))
