"""The handshake of one connection: what stands between the link and the SDK's client, and it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kage.config.schema import ServerSpec
from kage.core.sanitise import clip
from kage.mcp.client.asking.serverside import ServerSide
from kage.mcp.client.connections.ending import Ending
from kage.mcp.client.connections.era import Probe, make_probe
from kage.mcp.client.connections.owner import Owner
from kage.mcp.client.servers.journal import Journal
from kage.mcp.client.servers.recipe import Recipe
from kage.mcp.client.services import Services
from kage.mcp.client.transport.base import Link
from kage.mcp.client.wire.tap import Tap

if TYPE_CHECKING:
    from mcp.client import Client

_MAX_TEXT = 64 << 10  # characters of instructions kept


@dataclass(frozen=True, slots=True, kw_only=True)
class _Met:
    """What a server says of itself."""

    protocol: str = ""
    version: str = ""
    instructions: str = ""


class Handshake:
    """Made before it happens; :meth:`shake` does it.

    Args:
        line: The id decisions are bound to.
        legacy: Shake hands at once instead of asking for the era first.
        changed: Called whenever the server says that its tools changed.
    """

    def __init__(
        self,
        recipe: Recipe,
        services: Services,
        journal: Journal,
        *,
        line: str,
        legacy: bool,
        changed: Callable[[], None],
    ) -> None:
        self.tap: Tap | None = None
        self.owner: Owner | None = None
        self.chat: ServerSide | None = None
        self._recipe = recipe
        self._services = services
        self._journal = journal
        self._line = line
        self._legacy = legacy
        self._changed = changed
        self._probe: Probe | None = None
        self._known: _Met | None = None

    @property
    def client(self) -> Client | None:
        """The SDK's client, None before it is over."""
        return self.owner.client if self.owner is not None else None

    @property
    def modern(self) -> bool:
        """Whether the server speaks the era without handshake."""
        client = self.client
        return client is not None and client.session.discover_result is not None

    @property
    def protocol(self) -> str:
        """The revision spoken, "" before it is over."""
        return self._met().protocol

    @property
    def version(self) -> str:
        """The server's name and version, as it says."""
        return self._met().version

    @property
    def instructions(self) -> str:
        """What the server wants the model to know, as far as anybody would read."""
        return self._met().instructions

    @property
    def probing(self) -> bool:
        """Whether the question for the era is open."""
        return self._probe is not None and self._probe.sent and self._probe.verdict is None

    async def shake(self, link: Link, ending: Ending) -> None:
        """Do it over ``link``; unless ``client`` is there afterwards it failed."""
        services, journal, spec = self._services, self._journal, self._recipe.spec
        self.tap = tap = Tap(
            link.streams(),
            connection=self._line,
            seals=services.seals,
            redact=services.redactor,
            trace=journal.trace,
            changed=self._changed,
            ended=ending.silent,
        )
        self.chat = ServerSide(
            spec,
            services,
            tap,
            connection=self._line,
            journal=journal,
            modern=lambda: self.modern,
        )
        if not self._legacy:
            self._probe = tap.probe = self._make_probe(spec, tap, link.probe_wait)
        self.owner = Owner(
            tap,
            server=spec.name,
            legacy=self._legacy,
            declared=self.chat.reception.declared,
            broke=ending.broke,
        )
        await _first(self.owner.settled, ending.closed)
        tap.probe = None  # the question was for the handshake; later it asks for health
        self._met()

    def remember(self) -> None:
        """Keep what the server's own answer told of its era."""
        if self._probe is not None and self._probe.verdict is not None:
            self._services.eras.remember(self._recipe.entry, self._probe.verdict)

    def leave(self) -> None:
        """Let go of the client; whoever waits for an answer is told the connection closed."""
        if self.owner is not None:
            self.owner.leave()
        if self.chat is not None:
            self.chat.end()
        if self.tap is not None:
            self.tap.close()

    def _met(self) -> _Met:
        """Give what the server said of itself, once; a client that was left cannot be asked."""
        if self._known is None and self.client is not None:
            info = self.client.server_info
            version = f"{info.name} {info.version}".strip() if info is not None else ""
            self._known = _Met(
                protocol=self.client.protocol_version,
                version=clip(version, 200),
                instructions=clip(self.client.instructions or "", _MAX_TEXT),
            )
        return self._known or _Met()

    def _make_probe(self, spec: ServerSpec, tap: Tap, patience: float) -> Probe:
        known = self._services.eras.known(self._recipe.entry)
        return make_probe(spec.protocol, known, tap.reply, patience=patience)


async def _first(*events: asyncio.Event) -> None:
    """Wait until one of ``events`` is set."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
