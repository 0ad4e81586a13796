"""The engine: one open session, its runs, and everything around them; front ends see ``Host``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import assert_never

from kage.agent.boundary import Boundary
from kage.agent.conversation import Conversation
from kage.agent.deferral import Deferral
from kage.agent.mcp_status import McpStatus
from kage.agent.mcp_tools import McpTools
from kage.agent.offers import Using, using
from kage.agent.parts import Parts
from kage.agent.pinning import Pinning
from kage.agent.questions import Questions
from kage.agent.reloading import Reloading
from kage.agent.runner import Runner
from kage.agent.seat import Seat
from kage.agent.supervisor import Supervisor
from kage.agent.trusting import Trusting
from kage.agent.undoing import Undoing
from kage.core.commands import (
    AnswerApproval,
    AnswerLogin,
    AnswerPin,
    AnswerRequest,
    AnswerTrust,
    AskPins,
    AskTrust,
    CancelLogin,
    Command,
    EnableServer,
    Interrupt,
    LoginServer,
    LogoutServer,
    NewSession,
    ReloadConfig,
    RepeatCall,
    RestartServer,
    ResumeSession,
    RunShell,
    SetLogLevel,
    SetMode,
    SetModel,
    SubmitPrompt,
    UndoCall,
)
from kage.core.content import as_text
from kage.core.errors import KageError
from kage.core.events import Event
from kage.core.gate import Mode
from kage.core.messages import Message, UserMessage
from kage.core.servers import ServerStatus
from kage.core.sessions import SessionInfo
from kage.core.tools import ToolSpec
from kage.providers.base import ModelInfo

NONE: frozenset[str] = frozenset()
CLOSE_TIME = 5.5  # seconds for servers; the whole quit stays under 6


class Engine:
    """Implements ``agent.host.Host``; lives on one event loop."""

    def __init__(self, parts: Parts) -> None:
        publish = parts.bus.publish
        self._parts = parts
        self._publish = publish
        self._questions = Questions(publish)
        asker = self._questions if parts.interactive else None
        self._tasks = Supervisor(publish)
        self._conversation = Conversation(
            store=parts.store,
            gate=lambda session_id: parts.gate(session_id, asker),
            publish=publish,
            workspace=parts.workspace,
            mode=Mode(parts.settings.permissions.mode),
        )
        self._seat = Seat(parts.models, publish, changed=self._note_model)
        parts.sampler.seat = self._seat
        self._deferral = deferral = Deferral(parts.settings.defer_tools, publish)
        finder = McpTools(parts.registry.snapshot, deferral.load)
        self._boundary = Boundary(
            parts.servers,
            parts.registry,
            publish,
            workspace=parts.workspace,
            cwd=parts.cwd,
            own=(finder, McpStatus(parts.servers.statuses)),
        )
        self._trusting = Trusting(parts.trust, parts.servers, publish)
        self._pinning = Pinning(parts.pins, parts.servers, publish)
        self._reloading = Reloading(
            parts.configuration,
            parts.servers,
            publish,
            now=parts.settings,
            held=lambda: self._tasks.spawn(self._trusting.ask_waiting()),
            tighten=self._tighten,
        )
        self._runner = Runner(parts, self._conversation, self._seat, self._boundary, deferral)
        self._using = using(parts, self._conversation)
        self._runner.expand_with(self._using.expand)
        self._undoing = Undoing(parts, self._conversation, busy=lambda: self._runner.running)
        self._runner.watch_with(self._undoing.effects)

    @property
    def workspace(self) -> Path:
        """The folder the conversation is about."""
        return self._parts.workspace

    @property
    def model(self) -> str:
        """The model that answers; "" while it is being chosen."""
        return self._seat.model

    @property
    def mode(self) -> Mode:
        """The permission mode of this session."""
        return self._conversation.mode

    @property
    def running(self) -> bool:
        """Whether a run is on."""
        return self._runner.running

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``listener`` with each event; the result ends it."""
        return self._parts.bus.subscribe(listener)

    def messages(self) -> tuple[Message, ...]:
        """Give the conversation so far."""
        return tuple(self._conversation.messages)

    def tools(self) -> tuple[ToolSpec, ...]:
        """Give what the model can call now."""
        return tuple(tool.spec for tool in self._parts.registry.snapshot().values())

    def unlisted(self) -> frozenset[str]:
        """Give the tools requests only name, until the model finds them by search."""
        info = self._seat.info
        return self._deferral.unlisted(self._parts.registry.snapshot(), info) if info else NONE

    def servers(self) -> tuple[ServerStatus, ...]:
        """Give every configured server."""
        return self._parts.servers.statuses()

    def server_log(self, name: str) -> tuple[str, ...]:
        """Give the last stderr lines of a server kage holds in memory."""
        return self._parts.servers.log(name)

    async def restart_server(self, name: str, *, fresh: bool = False) -> None:
        """Restart a server make-before-break and wait for the outcome."""
        if fresh:
            await self._reloading.reload()
        await self._parts.servers.restart(name)

    @property
    def offers(self) -> Using:
        """Prompts and resources of servers, and the files of the workspace."""
        return self._using

    @property
    def undo(self) -> Undoing:
        """What calls did to files, and taking it back."""
        return self._undoing

    async def models(self) -> tuple[ModelInfo, ...]:
        """Ask every provider what it offers."""
        return await self._parts.models.available()

    async def sessions(self) -> tuple[SessionInfo, ...]:
        """Give the conversations on disk for this workspace."""
        return await asyncio.to_thread(self._parts.store.list, self._parts.workspace)

    async def history(self) -> tuple[str, ...]:
        """Give earlier prompts of this workspace."""
        return await asyncio.to_thread(self._parts.history.recent, self._parts.workspace)

    async def start(self) -> None:
        """Open the session, start the servers, begin to choose the model.

        Raises:
            SessionError: the session to resume cannot be opened.
        """
        parts = self._parts
        session, held = self._conversation.open(parts.resume)
        self._conversation.adopt(session, held)
        for notice in parts.notices:
            self._publish(notice)
        if parts.settings.mcp_enabled:
            parts.servers.start(parts.settings.servers.values())
        self._tasks.spawn(self._choose(held.model if held else ""))
        self._tasks.spawn(self._follow_servers())
        if parts.interactive:
            self._tasks.spawn(self._reloading.follow())
        if parts.interactive and parts.settings.mcp_enabled:
            self._tasks.spawn(self._trusting.ask_waiting())
        for companion in parts.companions:
            await companion.start(self)

    async def close(self) -> None:
        """End runs, servers and the session, within 6 s whatever they do."""
        self._reloading.stop()
        try:
            async with asyncio.timeout(CLOSE_TIME):
                for companion in self._parts.companions:
                    await companion.close()
                await self._runner.end()
                await asyncio.gather(
                    self._parts.servers.stop(), self._undoing.close(), self._reloading.last_look()
                )
        except TimeoutError:
            pass  # the watchdog ends what is left
        await self._tasks.stop()
        await self._seat.release(everything=True)
        self._conversation.close()
        if self._parts.release is not None:
            await self._parts.release()

    def send(self, command: Command) -> None:
        """Hand over a command; what comes of it is told by events."""
        try:
            self._dispatch(command)
        except KageError as error:
            self._tasks.complain(error)

    def _dispatch(self, command: Command) -> None:  # noqa: PLR0912  # one line per command
        match command:
            case SubmitPrompt():
                text = as_text(command.content)
                self._parts.history.add(self._parts.workspace, command.typed or text)
                message = UserMessage(content=command.content, written=command.typed)
                self._runner.submit(message, queue=command.queue, as_is=bool(command.typed))
            case Interrupt():
                self._runner.interrupt()
            case AnswerApproval():
                self._questions.answer(command.question_id, command.reply)
            case AnswerRequest():
                self._parts.inquiries.reply(command.request_id, command.reply)
            case SetLogLevel():
                self._tasks.spawn(self._parts.servers.set_log_level(command.name, command.level))
            case RunShell():
                self._parts.history.add(self._parts.workspace, f"!{command.line}")
                self._runner.shell(command.line)
            case SetModel():
                self._seat.take(command.model, "you chose it")
            case SetMode():
                self._conversation.set_mode(command.mode)
            case RestartServer():
                self._tasks.spawn(self.restart_server(command.name, fresh=command.fresh))
            case ReloadConfig():
                self._tasks.spawn(self._reloading.by_hand())
            case EnableServer():
                self._tasks.spawn(self._parts.servers.set_enabled(command.name, command.enabled))
            case AskTrust():
                self._tasks.spawn(self._trusting.ask(command.name))
            case AnswerTrust():
                self._tasks.spawn(self._trusting.answer(command))
            case AskPins():
                self._pinning.ask(command.name)
            case AnswerPin():
                self._tasks.spawn(self._pinning.answer(command))
            case LoginServer() | AnswerLogin() | CancelLogin() | LogoutServer():
                self._tasks.spawn(self._parts.servers.sign_in(command))
            case UndoCall():
                self._tasks.spawn(self._undoing.undo(command.record))
            case RepeatCall():
                self._runner.repeat(command.call_id)
            case NewSession():
                self._tasks.spawn(self._switch(""))
            case ResumeSession():
                self._tasks.spawn(self._switch(command.session_id))
            case _:
                assert_never(command)

    async def _switch(self, session_id: str) -> None:
        session, held = await asyncio.to_thread(self._conversation.open, session_id)
        await self._runner.end()
        self._conversation.adopt(session, held)
        self._using.forget()

    async def _choose(self, last: str) -> None:
        try:
            await self._seat.choose(self._parts.model, last)
        except KageError:
            if self._parts.interactive or self._seat.model:
                raise
            # without a person the one run tells why it cannot begin

    def _tighten(self, mode: Mode) -> bool:
        """Put a mode of the settings in force if it is stricter than the one that counts."""
        if mode is Mode.DEFAULT or self.mode is not Mode.DEFAULT:
            return False  # "ask" and "deny" each let pass what the other does not
        self._conversation.set_mode(mode)
        return True

    def _note_model(self, model: str) -> None:
        if self._conversation.messages:
            self._conversation.session.note_model(model)

    async def _follow_servers(self) -> None:
        """Apply what servers change while nothing runs; a run's boundaries do it otherwise."""
        changed = self._parts.servers.changed
        while True:
            await changed.wait()
            await self._runner.idle.wait()
            if changed.is_set():
                await self._boundary.apply(wait_restarts=False)
