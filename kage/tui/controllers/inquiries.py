"""What servers ask the person: one sheet at a time over the chat, the rest waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from kage.core.commands import AnswerRequest
from kage.core.requests import (
    Action,
    FormRequest,
    Purpose,
    RequestReply,
    ServerRequest,
    UrlRequest,
)
from kage.tui.controllers.stage import Backstage
from kage.tui.text import shown

if TYPE_CHECKING:
    from kage.tui.screens.asking import AskingScreen
    from kage.tui.screens.form import FormWords

_SAID = {
    Action.ACCEPT: "was answered",
    Action.DECLINE: "was declined",
    Action.CANCEL: "was closed without an answer",
}


class Inquiries:
    """Holds the open questions of servers, in the order they came."""

    def __init__(self, backstage: Backstage) -> None:
        self._backstage = backstage
        self._stage = backstage.stage
        self._remark = backstage.remark
        self._open: dict[str, ServerRequest] = {}
        self._shown = ""
        self._sheet: AskingScreen | None = None

    @property
    def waiting(self) -> int:
        """How many questions are open."""
        return len(self._open)

    @property
    def sheet(self) -> AskingScreen | None:
        """The sheet on the screen."""
        return self._sheet

    def ask(self, request: ServerRequest) -> None:
        """A server asks something."""
        self._open[request.id] = request
        self.surface()
        self._count()

    def settle(self, request_id: str, action: Action | None) -> None:
        """A question was answered, or withdrawn by the server or the end of its call."""
        request = self._open.pop(request_id, None)
        if request is None:
            return
        if self._shown == request_id and self._sheet is not None:
            self._shown = ""
            if self._sheet.is_current:
                self._sheet.dismiss(None)
            elif self._sheet.is_attached:  # another screen lies over it
                self._sheet.forsaken = True
        if action is None:
            self._remark(f"{shown(request.server, 40)} no longer waits for your answer")
        self.surface()
        self._count()

    def completed(self, server: str) -> None:
        """What the person did on a page of ``server`` has reached it."""
        self._remark(f"{shown(server, 40)} says that what you did in the browser arrived")

    def surface(self) -> None:
        """Show the next question, when nothing lies over the chat."""
        if self._shown or not self._open or not self._stage.free:
            return
        request = next(iter(self._open.values()))
        self._shown = request.id
        sheet = self._sheet = self._make(request)
        sheet.on_shown = self._count
        self._stage.push_screen(sheet, lambda reply: self._closed(request, sheet, reply))

    def _count(self) -> None:
        if self._sheet is not None and self._sheet.is_mounted:
            self._sheet.show_waiting(len(self._open) - 1)

    def _closed(
        self, request: ServerRequest, sheet: AskingScreen, reply: RequestReply | None
    ) -> None:
        if self._sheet is sheet:  # after a withdrawal the next one may be up before this is told
            self._sheet = None
        if self._shown == request.id:
            self._shown = ""
        if self._open.pop(request.id, None) is not None:
            answer = reply or RequestReply(action=Action.CANCEL)
            self._stage.send(AnswerRequest(request_id=request.id, reply=answer))
            self._remark(f"the question of {shown(request.server, 40)} {_SAID[answer.action]}")
        self.surface()

    def _make(self, request: ServerRequest) -> AskingScreen:
        from kage.tui.screens.form import FormScreen
        from kage.tui.screens.link import LinkScreen

        keymap, unasked = self._backstage.keymap, self._backstage.unasked()
        match request:
            case FormRequest():
                return FormScreen(request.form, keymap, _words(request), unasked=unasked)
            case UrlRequest():
                return LinkScreen(request, keymap, unasked)
            case _:
                assert_never(request)


def _words(request: FormRequest) -> FormWords:
    from kage.tui.screens.form import FormWords

    server = shown(request.server, 40)
    title, send = {
        Purpose.ELICITATION: (f"{server} asks you", "send"),
        Purpose.PROMPT: (f"{server} wants to ask the model", "let the model answer"),
        Purpose.ANSWER: (f"{server} is to get this answer of the model", "hand it over"),
    }[request.purpose]
    return FormWords(
        title=title,
        message=request.message,
        facts=tuple(shown(fact, 300) for fact in request.facts),
        warnings=tuple(shown(warning, 300) for warning in request.warnings),
        send=send,
        decline="decline",
    )
