"""Sign-ins the person asked for: a sheet with the page for each, until it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kage.core.commands import AnswerLogin, CancelLogin
from kage.core.events import LoginRequested, LoginSettled
from kage.tui.controllers.stage import Backstage
from kage.tui.text import shown

if TYPE_CHECKING:
    from kage.tui.screens.login import LoginScreen


class LoginSheets:
    """Holds the sheets of sign-ins under way."""

    def __init__(self, backstage: Backstage) -> None:
        self._backstage = backstage
        self._stage = backstage.stage
        self._remark = backstage.remark
        self._sheets: dict[str, LoginScreen] = {}  # by server

    def request(self, page: LoginRequested) -> None:
        """A page is to be opened; the sheet that stands shows a new one."""
        sheet = self._sheets.get(page.server)
        if sheet is not None and sheet.is_attached:
            sheet.show(page)
            return
        from kage.tui.screens.login import LoginScreen

        sheet = LoginScreen(
            page,
            self._backstage.keymap,
            pasted=lambda text: self._stage.send(AnswerLogin(name=page.server, address=text)),
            unasked=self._backstage.unasked(),
        )
        self._sheets[page.server] = sheet
        self._stage.push_screen(sheet, lambda _: self._closed(page.server))

    def settle(self, end: LoginSettled) -> None:
        """A sign-in is over; its sheet goes."""
        sheet = self._sheets.pop(end.server, None)
        if end.ok:
            self._remark(f"you are signed in to {shown(end.server, 40)}")
        if sheet is None:
            return
        if sheet.is_current:
            sheet.dismiss(None)
        elif sheet.is_attached:  # another screen lies over it
            sheet.forsaken = True

    def _closed(self, server: str) -> None:
        """The person closed the sheet while the sign-in was under way."""
        if self._sheets.pop(server, None) is not None:
            self._stage.send(CancelLogin(name=server))
            self._remark(f"the sign-in at {shown(server, 40)} was given up")
