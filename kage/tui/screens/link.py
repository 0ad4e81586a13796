"""A page a server wants the person to visit: the whole address, opened only by a key."""

from __future__ import annotations

import os

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from kage.core.links import BadLink, open_link
from kage.core.requests import Action, RequestReply, UrlRequest
from kage.tui.keymap import Context, Keymap
from kage.tui.screens.asking import AskingScreen, Unasked, banner
from kage.tui.text import MUTED, block, shown


class LinkScreen(AskingScreen):
    """Shows an address; gives the person's answer, None when closed."""

    CONTEXT = Context.LINK

    def __init__(self, request: UrlRequest, keymap: Keymap, unasked: Unasked | None = None) -> None:
        super().__init__(keymap, unasked)
        self._request = request

    def compose(self) -> ComposeResult:
        """Make the parts."""
        request = self._request
        title = f"{shown(request.server, 40)} wants you to open a page"
        with Vertical(classes="form-sheet"):
            yield banner(title, request.facts, request.warnings)
            with VerticalScroll(classes="form-scroll", can_focus=False):
                if request.message:
                    yield Static(block(request.message), classes="form-message")
                host = Content.assemble(("host     ", MUTED), (shown(request.host, 300), "bold"))
                yield Static(host, id="link-host")
                yield Static(Content.assemble(("address  ", MUTED), shown(request.url, 9_000)))
                yield Static(id="link-note")
            line = self.keys_line(
                ("link_open", "open it in the browser"), ("link_copy", "copy"),
                ("link_accept", "I agree"), ("link_decline", "decline"), ("link_close", "close"),
            )  # fmt: skip
            yield Static(classes="form-more")
            yield Static(line, classes="form-note")

    def act(self, action: str) -> None:
        """Open, copy or answer."""
        match action:
            case "link_open":
                self._open()
            case "link_copy":
                self.app.copy_to_clipboard(self._request.url)
                self._note("the address is on the clipboard")
            case "link_accept":
                self.dismiss(RequestReply(action=Action.ACCEPT))
            case "link_decline":
                self.dismiss(RequestReply(action=Action.DECLINE))
            case "link_close":
                self.dismiss(None)
            case "link_up" | "link_down":
                self.scroll_middle(-1 if action == "link_up" else 1)

    def _open(self) -> None:
        try:
            problem = open_link(self._request.url, os.environ)
        except BadLink as error:
            problem = str(error)
        if problem:
            self._note(f"it was not opened: {problem}; copy the address instead")
        else:
            self._note("it is being opened; say here that you agree so that the server goes on")

    def _note(self, text: str) -> None:
        self.query_one("#link-note", Static).update(Content.styled(shown(text, 300), "$warning"))
