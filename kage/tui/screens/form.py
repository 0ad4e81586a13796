"""A form to fill in and send, decline, or leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from kage.core.forms import Form
from kage.core.requests import Action, RequestReply
from kage.tui.keymap import Context, Keymap
from kage.tui.screens.asking import AskingScreen, Unasked, banner
from kage.tui.text import block
from kage.tui.widgets.form import SchemaForm


@dataclass(frozen=True, slots=True, kw_only=True)
class FormWords:
    """What stands around the fields; ``message`` need not be safe, the rest is.

    ``decline`` "" leaves only sending and closing.
    """

    title: str
    message: str = ""
    facts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    send: str = "send"
    decline: str = ""


class FormScreen(AskingScreen):
    """Shows a form; gives ``ACCEPT`` with values that fit, ``DECLINE``, or None when closed.

    Args:
        values: What stands in the fields at first; None: the form's defaults.
        unasked: Given when nobody opened it by hand.
    """

    CONTEXT = Context.FORM

    def __init__(
        self,
        form: Form,
        keymap: Keymap,
        words: FormWords,
        *,
        values: Mapping[str, Any] | None = None,
        unasked: Unasked | None = None,
    ) -> None:
        super().__init__(keymap, unasked)
        self._words = words
        self._schema_form = SchemaForm(form, values)

    def compose(self) -> ComposeResult:
        """Make the parts."""
        words = self._words
        warnings = (*words.warnings, *self._schema_form.form.notes)
        with Vertical(classes="form-sheet"):
            yield banner(words.title, words.facts, warnings)
            with VerticalScroll(classes="form-scroll", can_focus=False):
                if words.message:
                    yield Static(block(words.message), classes="form-message")
                yield self._schema_form
            decline = (("form_decline", words.decline),) if words.decline else ()
            line = self.keys_line(
                ("form_send", words.send), *decline, ("form_close", "close"),
                ("form_next", "next field"), ("form_down", "scroll"),
            )  # fmt: skip
            yield Static(classes="form-more")
            yield Static(line, classes="form-note")

    def wake(self) -> None:
        """Put the cursor into the first field."""
        if self.focused is None:
            self._schema_form.move(1)

    def act(self, action: str) -> None:
        """Send, decline, close, or move."""
        match action:
            case "form_send":
                values = self._schema_form.submit()
                if values is not None:
                    self.dismiss(RequestReply(action=Action.ACCEPT, values=values))
            case "form_decline" if self._words.decline:
                self.dismiss(RequestReply(action=Action.DECLINE))
            case "form_close":
                self.dismiss(None)
            case "form_next" | "form_back":
                self._move(1 if action == "form_next" else -1)
            case "form_up" | "form_down":
                self.scroll_middle(-1 if action == "form_up" else 1)

    def _move(self, step: int) -> None:
        if not self._schema_form.move(step):  # around
            self.set_focus(None)
            self._schema_form.move(step)
