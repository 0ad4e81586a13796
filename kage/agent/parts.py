"""The concrete objects an engine works with; ``cli`` puts them together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kage.agent.boundary import Servers
from kage.agent.bus import Bus
from kage.agent.byhand import Judge
from kage.agent.effects import Claims
from kage.agent.forms import Inquiries
from kage.agent.host import Host
from kage.agent.pinning import PinDesk
from kage.agent.reloading import Configuration
from kage.agent.sampling import SeatSampler
from kage.agent.source import NoOffers, OfferSource
from kage.agent.trusting import TrustDesk
from kage.config.schema import Settings
from kage.core.events import Noticed
from kage.core.gate import Asker, Mode
from kage.core.redact import Redactor
from kage.core.tools import ToolSpec
from kage.providers.base import ModelInfo, Provider
from kage.sessions.history import History
from kage.sessions.store import SessionStore
from kage.tools.registry import Registry


class SessionGate(Judge, Protocol):
    """The gate of one session."""

    mode: Mode

    def said(self, text: str) -> None:
        """Take note of what the person wrote."""
        ...

    def returned(self, server: str, text: str) -> None:
        """Take note of what a server gave back before the session was resumed."""
        ...


class ModelMaker(Protocol):
    """What the engine needs of ``providers.catalog.Models``."""

    async def choose(self) -> tuple[str, str]:
        """Give the model to start with, and why."""
        ...

    def create(self, model: str) -> Provider:
        """Make the provider of a model.

        Raises:
            ProviderError: there is none, or its key is missing.
        """
        ...

    async def available(self) -> tuple[ModelInfo, ...]:
        """Ask every endpoint what it offers."""
        ...


class ClaimBook(Claims, Protocol):
    """What is remembered of tools that did not keep their word; ``permissions.claims``."""

    def about(self, spec: ToolSpec) -> str:
        """Say what is known against the word of a tool, "" for nothing."""
        ...


class Companion(Protocol):
    """Something that lives beside one engine: the control socket, for one."""

    async def start(self, host: Host) -> None:
        """Begin, once the session is open; returns soon and never raises."""
        ...

    async def close(self) -> None:
        """End, before the servers do."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything around one engine."""

    settings: Settings
    workspace: Path
    cwd: Path
    environ: Mapping[str, str]
    bus: Bus
    servers: Servers
    registry: Registry
    models: ModelMaker
    store: SessionStore
    history: History
    gate: Callable[[str, Asker | None], SessionGate]  # of a session id
    redact: Redactor
    inquiries: Inquiries = field(default_factory=Inquiries)  # what servers ask the person
    sampler: SeatSampler = field(default_factory=SeatSampler)  # what they ask the model
    notices: tuple[Noticed, ...] = ()
    model: str = ""  # asked for on the command line
    resume: str = ""  # id of the session to go on with
    interactive: bool = True  # a person can answer questions
    wait_for_servers: bool = False  # the first turn waits for eager servers
    configuration: Configuration | None = None  # where the settings are read again from
    agent_environment: Mapping[str, str] = field(default_factory=dict)  # of the agent's shell
    companions: tuple[Companion, ...] = ()
    offers: OfferSource = field(default_factory=NoOffers)  # prompts and resources of servers
    own: tuple[Path, ...] = ()  # folders kage itself writes to all the time
    claims: ClaimBook | None = None  # which tools did not keep their word
    trust: TrustDesk | None = None  # who says which entries may start
    pins: PinDesk | None = None  # who knows the definitions of tools
    release: Callable[[], Awaitable[None]] | None = None  # the last thing done at close
