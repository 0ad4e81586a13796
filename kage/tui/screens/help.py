"""Every command and every key, from the same tables that make them work."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from kage.tui.controllers.commands import COMMANDS
from kage.tui.keymap import ACTIONS, Context, Keymap
from kage.tui.text import MUTED
from kage.tui.widgets.rows import Row, Rows, RowsView, Span, row

LEFT = 30


def help_rows(keymap: Keymap) -> Rows:
    """Give the help text as rows."""
    rows: list[Row] = [row(Span("Commands", "strong"))]
    for command in COMMANDS:
        spelled = f"/{command.name} {command.usage}".strip()
        also = f"  (also {', '.join('/' + name for name in command.aliases)})"
        rows += _entry(spelled, command.help + (also if command.aliases else ""))
    rows += [
        *_entry("/SERVER:PROMPT [key=value]", "fill in a prompt of a server, look at it, send it"),
        *_entry("@FILE  @SERVER:URI", "attach a file here, or what a server has, when it is sent"),
        *_entry("! COMMAND", "run a shell line yourself; its output joins the conversation"),
        row(""),
    ]
    for context in Context:
        actions = [action for action in ACTIONS if action.context is context]
        rows.append(row(Span(f"Keys: {context.value}", "strong")))
        for action in actions:
            keys = " ".join(keymap.keys(action.id)) or "no key"
            name = "" if action.fixed else f"  [{action.id}]"
            rows += _entry(keys, action.help, name)
        rows.append(row(""))
    rows.append(
        row(Span('Bind a name in brackets in config.toml: [keys] "ctrl+g" = "servers"', "muted"))
    )  # fmt: skip
    return tuple(rows)


def _entry(left: str, right: str, name: str = "") -> list[Row]:
    hang = " " * (LEFT + 2)
    if len(left) > LEFT - 2:
        return [
            row("  ", Span(left, "key")),
            row(hang, right, Span(name, "muted"), hang=hang, words=True),
        ]
    return [
        row("  ", Span(left.ljust(LEFT), "key"), right, Span(name, "muted"), hang=hang, words=True)
    ]


class HelpScreen(ModalScreen[None]):
    """Shows the help text."""

    def __init__(self, keymap: Keymap) -> None:
        super().__init__()
        self._keymap = keymap

    def compose(self) -> ComposeResult:
        """Make the parts."""
        with Vertical(classes="sheet"):
            yield Static(Content.styled("Keys and commands", "bold $accent"), classes="sheet-title")
            yield RowsView(id="help-text")
            yield Static(Content.styled("esc closes", MUTED), classes="sheet-note")

    def on_mount(self) -> None:
        """Fill in the text."""
        self.query_one(RowsView).show(help_rows(self._keymap))

    def on_key(self, event: events.Key) -> None:
        """Scroll, or close."""
        event.stop()
        if scrolled(self.query_one(RowsView), self._keymap.find(Context.LIST, event.key)):
            return
        self.dismiss(None)


def scrolled(view: RowsView, action: str | None) -> bool:
    """Scroll ``view`` when ``action`` is one of moving in a list."""
    page = max(1, view.size.height - 1)
    steps = {"list_up": -1, "list_down": 1, "list_page_up": -page, "list_page_down": page}
    if action not in steps:
        return False
    view.scroll_relative(y=steps[action], animate=False)
    return True
