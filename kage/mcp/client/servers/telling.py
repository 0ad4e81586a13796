"""How one server is doing, and everybody who wants to know told of each change."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kage.config.schema import ServerSpec
from kage.core.pins import INSTRUCTIONS
from kage.core.servers import Fault, ServerState, ServerStatus
from kage.mcp.client.calling.definitions import left_out
from kage.mcp.client.connections.connection import Connection
from kage.mcp.client.offers.lists import KINDS
from kage.mcp.client.servers.backoff import Backoff
from kage.mcp.client.servers.bringup import Home
from kage.mcp.client.servers.manifest import Manifest
from kage.mcp.client.servers.wares import Wares


class Telling:
    """Holds the state of one server with its fault and age."""

    def __init__(self, spec: ServerSpec, home: Home, wares: Wares) -> None:
        self.state = ServerState.DISABLED if spec.disabled else ServerState.STOPPED
        self.fault: Fault | None = None
        self.backoff = Backoff(spec.restart)
        self.live: Connection | None = None  # what the status describes
        self.known: Manifest | None = None  # the same while there is no process
        self._spec = spec
        self._home = home
        self._wares = wares
        self._since = home.clock.now()
        self._heard_of = False

    def about(self, spec: ServerSpec) -> None:
        """Describe another entry from now on."""
        self._spec = spec

    def to(self, state: ServerState, fault: Fault | None = None) -> None:
        """Change the state, or what it says, and publish it."""
        previous = self.state if self._heard_of else None
        if state is not self.state:
            self._since = self._home.clock.now()
        self._heard_of = True
        self.state, self.fault = state, fault
        self._home.publish(self.status(), previous)

    def draining(self, old: Connection) -> None:
        """Tell that ``old`` only finishes what runs on it, and that the state stays."""
        draining = replace(self.status(), state=ServerState.DRAINING, pid=old.pid)
        self._home.publish(draining, self.state)
        self._home.publish(self.status(), ServerState.DRAINING)

    def status(self) -> ServerStatus:
        """Describe the server as of now."""
        spec = self._spec
        command = spec.url or shlex.join((spec.command, *spec.args))
        status = ServerStatus(
            name=spec.name,
            origin=spec.origin,
            state=self.state,
            since=self._since,
            transport=spec.transport,
            command=self._home.services.redactor(command),
            fault=self.fault,
            attempt=self.backoff.attempt if self.state is ServerState.CONNECTING else 0,
            attempts=self.backoff.attempts,
            tools=len(self._wares.tools),
            tokens=self._wares.tokens,
            held=_held(self._wares),
        )
        if (live := self.live) is not None and not live.closed.is_set():
            lists = live.offer_lists
            beside: dict[str, Any] = {} if lists is None else dict(lists.offers().counts)
            return replace(
                status,
                pid=live.pid,
                transport="sse" if live.sse else spec.transport,
                protocol=live.protocol,
                version=live.version,
                dropped=left_out(live.listing, spec),
                instructions=live.instructions,
                stray_lines=live.stray_lines,
                **beside,
            )
        if (known := self.known) is not None:
            return replace(
                status,
                protocol=known.protocol,
                version=known.version,
                dropped=left_out(known.listing, spec),
                instructions=known.instructions,
                **_counts(known.offers),
            )
        return status


def _held(wares: Wares) -> tuple[str, ...]:
    """Name what is not offered until the person looked at it, each with its reason."""
    held = wares.judged.verdict.held
    tools = [tool.original for tool in wares.withheld]
    names = [name for name in (*tools, INSTRUCTIONS) if name in held]
    return tuple(f"{held[name].label}: {held[name].why}" for name in names)


def _counts(offers: Mapping[str, Any]) -> dict[str, Any]:
    return {kind: len(offers.get(kind, ())) for kind in KINDS}
