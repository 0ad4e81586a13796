"""What a front end sees of the engine: commands in, events out, and a few questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kage.core.commands import Command
from kage.core.events import Event
from kage.core.gate import Mode
from kage.core.messages import Message
from kage.core.servers import ServerStatus
from kage.core.sessions import SessionInfo
from kage.core.tools import ToolSpec
from kage.providers.base import ModelInfo

if TYPE_CHECKING:
    from kage.core.offers import CompletionWish, FilledPrompt, Offers
    from kage.core.undo import UndoItem, UndoPlan


class OfferDesk(Protocol):
    """What a person can put into a prompt beside words."""

    def listed(self) -> tuple[Offers, ...]:
        """Give the prompts, resources and templates of servers that have some."""
        ...

    async def files(self) -> tuple[str, ...]:
        """Give the files of the workspace, without what git ignores; takes up to a few seconds."""
        ...

    async def complete(self, wish: CompletionWish) -> tuple[str, ...]:
        """Ask a server for values of an argument, at most 100; () when it does not answer."""
        ...

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str]) -> FilledPrompt:
        """Have a prompt filled in by its server; the person's own act, recorded as one.

        Raises:
            KageError: a rule forbids it, or it could not be had.
        """
        ...


class UndoHost(Protocol):
    """What calls did to files, and taking it back; the command is ``UndoCall``."""

    async def items(self) -> tuple[UndoItem, ...]:
        """Give what calls of this conversation changed, newest first."""
        ...

    async def plan(self, record: str) -> UndoPlan:
        """Say what undoing would do now.

        Raises:
            KageError: there is no such record.
        """
        ...

    def broken_claim(self, spec: ToolSpec) -> str:
        """Say what is known against the word of a tool, "" for nothing."""
        ...


class Host(Protocol):
    """One open session and everything around it; ``agent.engine.Engine`` is the real one."""

    @property
    def workspace(self) -> Path:
        """The folder the conversation is about."""
        ...

    @property
    def model(self) -> str:
        """The model that answers, "provider:name"; "" while it is being chosen."""
        ...

    @property
    def mode(self) -> Mode:
        """The permission mode of this session."""
        ...

    @property
    def running(self) -> bool:
        """Whether a run is on."""
        ...

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``listener`` with each event, on the engine's loop; the result ends it.

        A listener returns at once and never raises.
        """
        ...

    def send(self, command: Command) -> None:
        """Hand over a command; what comes of it is told by events, errors as ``Noticed``."""
        ...

    async def start(self) -> None:
        """Open the session, choose the model, start the servers; returns before they are up."""
        ...

    async def close(self) -> None:
        """End runs, servers and the session file, within 6 s whatever they do."""
        ...

    def messages(self) -> tuple[Message, ...]:
        """Give the conversation so far."""
        ...

    def tools(self) -> tuple[ToolSpec, ...]:
        """Give what the model can call now."""
        ...

    def unlisted(self) -> frozenset[str]:
        """Give the tools requests only name, until the model finds them by search."""
        ...

    def servers(self) -> tuple[ServerStatus, ...]:
        """Give every configured server, in the order of the configuration."""
        ...

    def server_log(self, name: str) -> tuple[str, ...]:
        """Give the last stderr lines of a server kage holds in memory."""
        ...

    async def restart_server(self, name: str, *, fresh: bool = False) -> None:
        """Restart a server make-before-break and wait for the outcome.

        Args:
            name: The server.
            fresh: Read the configuration again first.

        Raises:
            KageError: there is no such server, or the new one failed and the old one serves on.
        """
        ...

    @property
    def offers(self) -> OfferDesk:
        """Prompts and resources of servers, and the files of the workspace."""
        ...

    @property
    def undo(self) -> UndoHost:
        """What calls did to files, and taking it back."""
        ...

    async def models(self) -> tuple[ModelInfo, ...]:
        """Ask every provider what it offers; takes at most a few seconds."""
        ...

    async def sessions(self) -> tuple[SessionInfo, ...]:
        """Give the conversations on disk for this workspace, newest first."""
        ...

    async def history(self) -> tuple[str, ...]:
        """Give earlier prompts of this workspace, oldest first."""
        ...
