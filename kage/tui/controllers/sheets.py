"""Opens the screens over the chat and carries out what is chosen there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from kage.core.commands import (
    AskPins,
    AskTrust,
    Command,
    EnableServer,
    LoginServer,
    RepeatCall,
    RestartServer,
    ResumeSession,
    SetModel,
    UndoCall,
)
from kage.core.errors import KageError
from kage.core.gate import Question
from kage.tui.keymap import Keymap
from kage.tui.status import Status
from kage.tui.text import shown

if TYPE_CHECKING:
    from textual.screen import Screen

    from kage.agent.host import Host
    from kage.tui.screens.picker import Entry, Picker

NOT_YET = "kage is still starting; try again in a moment"


class Stage(Protocol):
    """What the sheets need of the app."""

    @property
    def host(self) -> Host | None:
        """The host, once it is up."""
        ...

    def push_screen(self, screen: Screen[Any], callback: Callable[[Any], None]) -> object:
        """Push a screen; ``callback`` gets its result."""
        ...

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` beside everything else."""
        ...

    def send(self, command: Command) -> None:
        """Hand a command to the engine."""
        ...


class Sheets:
    """The screens; each module is imported when it is first opened."""

    def __init__(
        self,
        *,
        stage: Stage,
        keymap: Keymap,
        status: Status,
        remark: Callable[[str], None],
        write: Callable[[str], None],
    ) -> None:
        self._stage = stage
        self._keymap = keymap
        self._status = status
        self._remark = remark
        self._write = write

    def help(self) -> None:
        """Show every key and command."""
        from kage.tui.screens.help import HelpScreen

        self._stage.push_screen(HelpScreen(self._keymap), _nothing)

    def details(self, question: Question) -> None:
        """Show the whole of a call."""
        from kage.tui.screens.details import DetailsScreen

        self._stage.push_screen(DetailsScreen(question, self._keymap), _nothing)

    def servers(self, name: str = "", *, log: bool = False) -> None:
        """Show the servers, ``name`` marked."""
        from kage.tui.screens.servers import ServersScreen

        host = self._stage.host
        if host is None:
            self._remark(NOT_YET)
            return
        self._stage.push_screen(ServersScreen(host, self._keymap, name=name, log=log), _nothing)

    def server(self, verb: str, name: str) -> None:
        """Carry out what was asked for on the servers screen."""
        if verb == "restart":
            self._stage.send(RestartServer(name=name))
        elif verb == "trust":
            self._stage.send(AskTrust(name=name))
        elif verb == "pins":
            self._stage.send(AskPins(name=name))
        elif verb == "login":
            self._stage.send(LoginServer(name=name))
        else:
            self._stage.send(EnableServer(name=name, enabled=verb == "enable"))

    def models(self) -> None:
        """Let the person choose a model."""
        from kage.tui.screens.lists import model_entries

        async def load(host: Host) -> tuple[Entry, ...]:
            return model_entries(await host.models(), self._status.model)

        def chosen(model: str | None) -> None:
            if model is not None and model != self._status.model:
                self._stage.send(SetModel(model=model))

        self._pick("Models", "No provider offers a model.", load, chosen, self._status.model)

    def sessions(self) -> None:
        """Let the person choose a conversation to go on with."""
        from kage.tui.screens.lists import session_entries

        async def load(host: Host) -> tuple[Entry, ...]:
            return session_entries(await host.sessions(), self._status.session_id)

        def chosen(session_id: str | None) -> None:
            if session_id is not None:
                self._stage.send(ResumeSession(session_id=session_id))

        self._pick("Conversations in this folder", "There is no other one yet.", load, chosen, "")

    def undo(self) -> None:
        """Let the person choose a call whose changes go."""
        from kage.tui.screens.lists import undo_entries

        async def load(host: Host) -> tuple[Entry, ...]:
            return undo_entries(await host.undo.items())

        def chosen(record: str | None) -> None:
            host = self._stage.host
            if record is not None and host is not None:
                self._stage.in_background(self._undo(host, record))

        empty = "No call of this conversation changed a file that kage knows of."
        self._pick("Undo what a call did to files", empty, load, chosen, "")

    async def _undo(self, host: Host, record: str) -> None:
        from kage.tui.screens.undo import UndoScreen

        plan = await host.undo.plan(record)

        def answered(yes: bool | None) -> None:
            if yes:
                self._stage.send(UndoCall(record=record))

        self._stage.push_screen(UndoScreen(plan, self._keymap), answered)

    def unknown(self) -> None:
        """Let the person decide about a call whose outcome nobody knows."""
        from kage.core.unsettled import unsettled
        from kage.tui.screens.lists import unsettled_entries

        async def load(host: Host) -> tuple[Entry, ...]:
            return unsettled_entries(unsettled(host.messages()), host.tools())

        empty = "Of every call of this conversation it is known how it ended."
        self._pick("Calls whose outcome is unknown", empty, load, self._unknown, "")

    def _unknown(self, call_id: str | None) -> None:
        from kage.core.unsettled import unsettled
        from kage.tui.screens.unknown import UnknownScreen, check_prompt

        host = self._stage.host
        held = unsettled(host.messages()) if host is not None else ()
        item = next((item for item in held if item.call.id == call_id), None)
        if item is None:
            return

        def answered(choice: str | None) -> None:
            if choice == "retry":
                self._stage.send(RepeatCall(call_id=item.call.id))
            elif choice == "check":
                self._write(check_prompt(item))

        self._stage.push_screen(UnknownScreen(item, self._keymap), answered)

    def _pick(
        self,
        title: str,
        empty: str,
        load: Callable[[Host], Awaitable[Iterable[Entry]]],
        chosen: Callable[[str | None], None],
        current: str,
    ) -> None:
        from kage.tui.screens.picker import Picker

        host = self._stage.host
        if host is None:
            self._remark(NOT_YET)
            return

        async def fill(picker: Picker) -> None:
            try:
                entries = tuple(await load(host))
            except KageError as error:
                if picker.is_attached:
                    picker.fail(shown(str(error), 400))
                return
            if picker.is_attached:
                picker.fill(entries)

        picker = Picker(title=title, empty=empty, keymap=self._keymap, chosen=current)
        picker.on_opened = lambda opened: self._stage.in_background(fill(opened))
        self._stage.push_screen(picker, chosen)


def _nothing(_: object) -> None:
    pass
