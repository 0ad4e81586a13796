"""A server's prompt from the line a person wrote to the message that is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kage.agent import prompts
from kage.core.commands import SubmitPrompt
from kage.core.errors import KageError, UsageError
from kage.core.levels import Level
from kage.tui.controllers.sheets import NOT_YET, Stage
from kage.tui.keymap import Keymap
from kage.tui.screens.chat import ChatScreen
from kage.tui.status import Status
from kage.tui.text import shown

if TYPE_CHECKING:
    from kage.core.offers import FilledPrompt, PromptOffer


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One prompt a person asked for."""

    written: prompts.Written
    offer: PromptOffer | None  # None: the server did not list it
    text: str  # the line
    queue: bool

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"/{self.written.server}:{self.written.name}"


class PromptRuns:
    """Asks for what is missing, has the prompt filled in, shows it, and sends it.

    Args:
        chat: The screen with the prompt.
        status: What the screen shows.
        stage: The app.
        keymap: The keys of its screens.
    """

    def __init__(
        self,
        *,
        chat: ChatScreen,
        status: Status,
        stage: Stage,
        keymap: Keymap,
    ) -> None:
        self._chat = chat
        self._status = status
        self._stage = stage
        self._keymap = keymap

    def is_one(self, text: str) -> bool:
        """Say whether a draft is the line of a server's prompt."""
        return prompts.written(text.strip(), self._status.servers) is not None

    def begin(self, text: str, *, queue: bool) -> bool:
        """Take a line up; False when it cannot be, then the draft stays."""
        written = prompts.written(text.strip(), self._status.servers)
        host = self._stage.host
        if written is None:
            return False
        if host is None:
            return self._refuse(NOT_YET)
        held = {each.server: each for each in host.offers.listed()}
        wanted = Wanted(
            written=written, offer=prompts.lookup(held, written), text=text.strip(), queue=queue
        )
        try:
            words = prompts.split(written.rest, wanted.offer)
            given = prompts.arguments(words, wanted.offer, name=wanted.name, complete=False)
        except UsageError as error:
            return self._refuse(str(error))
        taken = wanted.offer.arguments if wanted.offer is not None else ()
        if any(item.required and item.name not in given for item in taken):
            self._ask(wanted, given)
        else:
            self._stage.in_background(self._fill(wanted, given))
        return True

    def _refuse(self, reason: str) -> bool:
        self._chat.remark(shown(reason, 300), level=Level.WARNING, topic="command")
        return False

    def _ask(self, wanted: Wanted, given: dict[str, str]) -> None:
        """Let a form ask for the arguments."""
        from kage.core.forms import Field, Form, Kind
        from kage.core.requests import RequestReply
        from kage.tui.screens.form import FormScreen, FormWords

        assert wanted.offer is not None
        fields = tuple(
            Field(
                name=item.name,
                kind=Kind.TEXT,
                description=item.description,
                required=item.required,
            )
            for item in wanted.offer.arguments
        )
        told = wanted.offer.description or wanted.offer.title
        words = FormWords(title=shown(wanted.name, 100), message=told, send="fill in")

        def answered(reply: RequestReply | None) -> None:
            if reply is None:
                self._chat.restore_draft(wanted.text)
                return
            values = {key: str(value) for key, value in reply.values.items() if value is not None}
            self._stage.in_background(self._fill(wanted, values))

        screen = FormScreen(Form(fields=fields), self._keymap, words, values=given)
        self._stage.push_screen(screen, answered)

    async def _fill(self, wanted: Wanted, given: dict[str, str]) -> None:
        host = self._stage.host
        if host is None:
            return
        self._chat.remark(f"{shown(wanted.name, 60)} is being filled in …", topic="prompt")
        try:
            filled = await host.offers.prompt(wanted.written.server, wanted.written.name, given)
        except KageError:
            self._chat.restore_draft(wanted.text)
            raise
        finally:
            self._chat.drop_remark("prompt")
        self._preview(wanted, filled)

    def _preview(self, wanted: Wanted, filled: FilledPrompt) -> None:
        from kage.tui.screens.preview import PreviewScreen

        def answered(send: bool | None) -> None:
            if not send:
                self._chat.restore_draft(wanted.text)
                return
            self._chat.transcript.follow()
            queue = wanted.queue and self._status.running
            content = prompts.content(filled)
            self._stage.send(SubmitPrompt(content=content, queue=queue, typed=wanted.text))

        screen = PreviewScreen(filled, self._keymap, name=wanted.name)
        self._stage.push_screen(screen, answered)
