"""The page to sign in to a server at: its address in full, opened or copied only by a key."""

from __future__ import annotations

import os
from collections.abc import Callable

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from kage.core.events import LoginRequested
from kage.core.links import BadLink, open_link
from kage.tui.keymap import Context, Keymap
from kage.tui.screens.asking import AskingScreen, Unasked, banner
from kage.tui.text import MUTED, shown

_HINT = (
    "The page comes back to kage by itself. If your browser is on another machine it ends at an "
    "address of 127.0.0.1 it cannot open: paste that address here."
)


class LoginScreen(AskingScreen):
    """Shows where to sign in, and takes the address the browser ended at.

    Args:
        pasted: Told what was pasted.
    """

    CONTEXT = Context.LOGIN

    def __init__(
        self,
        page: LoginRequested,
        keymap: Keymap,
        *,
        pasted: Callable[[str], None],
        unasked: Unasked | None = None,
    ) -> None:
        super().__init__(keymap, unasked)
        self._page = page
        self._pasted = pasted

    def compose(self) -> ComposeResult:
        """Make the parts."""
        with Vertical(classes="form-sheet"):
            yield banner(f"Sign in to {shown(self._page.server, 40)}", (), ())
            with VerticalScroll(classes="form-scroll", can_focus=False):
                yield Static(id="login-page")
                yield Static(Content.styled(_HINT, MUTED))
                # disabled: it takes keys only once it is asked for
                yield Input(placeholder="the address the page ended at", disabled=True)
                yield Static(id="login-note")
            line = self.keys_line(
                ("login_open", "open it in the browser"), ("login_copy", "copy"),
                ("login_paste", "paste"), ("login_close", "give up"),
            )  # fmt: skip
            yield Static(line, classes="form-note")

    def on_mount(self) -> None:
        """Show the page."""
        self.query_one(Input).display = False
        self.show(self._page)

    def show(self, page: LoginRequested) -> None:
        """Show another page: the first one led nowhere."""
        self._page = page
        host = Content.assemble(("host     ", MUTED), (shown(page.host, 300), "bold"))
        address = Content.assemble(("address  ", MUTED), shown(page.url, 9_000))
        self.query_one("#login-page", Static).update(Content("\n").join((host, address)))

    def act(self, action: str) -> None:
        """Open, copy, paste or give up."""
        match action:
            case "login_open":
                self._open()
            case "login_copy":
                self.app.copy_to_clipboard(self._page.url)
                self._note("the address is on the clipboard")
            case "login_paste":
                field = self.query_one(Input)
                field.display = True
                field.disabled = False
                field.focus()
            case "login_close":
                self.dismiss(None)
            case "login_up" | "login_down":
                self.scroll_middle(-1 if action == "login_up" else 1)

    def on_paste(self, event: events.Paste) -> None:
        """Take a paste that went to no field."""
        event.stop()
        self._take(event.text)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take what was typed or pasted into the field."""
        event.stop()
        self._take(event.value)
        event.input.value = ""

    def _take(self, text: str) -> None:
        if text.strip():
            self._pasted(text.strip())
            self._note("looking at what you pasted …")

    def _open(self) -> None:
        try:
            problem = open_link(self._page.url, os.environ)
        except BadLink as error:
            problem = str(error)
        if problem:
            self._note(f"it was not opened: {problem}; copy the address instead")
        else:
            self._note("your browser opens it; kage waits for the end of it")

    def _note(self, text: str) -> None:
        self.query_one("#login-note", Static).update(Content.styled(shown(text, 300), "$warning"))
