"""All connections to MCP servers: what is wanted, how each is doing, what changes at a boundary."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kage.config.schema import ServerSpec
from kage.core.commands import SignInCommand
from kage.core.errors import UsageError
from kage.core.events import DefinitionsHeld, Noticed, Publish, ServerChanged
from kage.core.gate import Seals
from kage.core.levels import Level
from kage.core.pins import INSTRUCTIONS, HeldChange, Pins
from kage.core.processes import Spawner
from kage.core.redact import Redactor
from kage.core.sandbox import Sandbox
from kage.core.servers import Fault, ServerState, ServerStatus
from kage.core.tools import Tool
from kage.mcp.client.asking.answering import Around
from kage.mcp.client.calling.adapter import cap
from kage.mcp.client.connections.sdk import Sdk
from kage.mcp.client.oauth.desk import Desk
from kage.mcp.client.oauth.logins import Logins
from kage.mcp.client.offers.offering import Offering
from kage.mcp.client.servers.bringup import Home
from kage.mcp.client.servers.clock import Clock, WallClock
from kage.mcp.client.servers.eras import Eras
from kage.mcp.client.servers.fleet import Fleet
from kage.mcp.client.servers.journal import Journal
from kage.mcp.client.servers.manifest import Manifests
from kage.mcp.client.servers.reconcile import Step
from kage.mcp.client.servers.server import Server
from kage.mcp.client.services import Services

MAX_STARTING = 64  # servers that start at the same time
MAX_INSTRUCTIONS = 2048  # bytes of one server's instructions the model reads


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSwap:
    """All tools ``server`` offers from now on; () when it is gone."""

    server: str
    tools: tuple[Tool, ...]


class Manager:
    """Owns every server; making one starts nothing.

    Args:
        publish: Told of every change of state, from any moment.
        inherit_stderr: Whether servers may write to kage's own stderr; a TUI may not.
        journals: Folder of the servers' log files; None: memory only.
        manifests: Folder of what servers offered last time; None: memory only.
        trusted: Asked with an entry and its hash before anything is started or connected to;
            gives why it may not be.
        pins: Who knows the definitions of their tools; None: nobody compares them.
        around: Whom servers' questions go to; without it nothing is declared but roots.
        clock: The time of waits, idle times and health checks.
        logins: The sign-ins of HTTP servers; None: nobody signs in.
        sandbox: Makes the sandboxes entries ask for; without it such an entry is refused.
    """

    def __init__(  # noqa: PLR0913 - the parts it stands between
        self,
        *,
        workspace: Path,
        spawner: Spawner,
        seals: Seals,
        publish: Publish,
        redactor: Redactor,
        inherit_stderr: bool,
        journals: Path | None,
        environ: Mapping[str, str],
        manifests: Path | None = None,
        trusted: Callable[[ServerSpec, str], Fault | None] = lambda spec, entry: None,
        pins: Pins | None = None,
        clock: Clock | None = None,
        logins: Logins | None = None,
        around: Around | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._publish = publish
        self._redactor = redactor
        self._journals = journals
        self._changed = asyncio.Event()
        self._fleet = Fleet(self._make, publish, self._changed)
        self.beside = Offering(self._fleet, publish)  # what servers offer beside tools
        services = Services(
            spawner=spawner,
            seals=seals,
            redactor=redactor,
            sdk=Sdk(),
            eras=Eras(manifests.parent / "eras.json" if manifests is not None else None),
            logins=logins,
            sandbox=sandbox,
            around=around or Around(publish=publish, workspace=workspace),
        )
        self._desk: Desk | None = None
        if logins is not None:
            self._desk = Desk(
                logins, publish, workspace=workspace, server=self._fleet.get, retry=self.retry
            )
        self._home = Home(
            services=services,
            environ=environ,
            workspace=workspace,
            inherit_stderr=inherit_stderr,
            gate=asyncio.Semaphore(MAX_STARTING),
            servers=lambda: tuple(spec.name for spec in self._fleet.specs),
            publish=self._tell,
            wake=self._changed.set,
            clock=clock or WallClock(),
            manifests=Manifests(manifests),
            trusted=trusted,
            pins=pins,
            tell=lambda changes: publish(DefinitionsHeld(changes=changes)),
        )

    def start(self, specs: Iterable[ServerSpec]) -> None:
        """Start what is enabled, side by side, and return at once."""
        self.reconcile(specs)

    def reconcile(self, specs: Iterable[ServerSpec]) -> tuple[Step, ...]:
        """Add, change, remove and disable what differs from the entries before.

        Returns at once with what was begun. Changed servers are replaced, new one first; those
        whose process stays take their settings over at the next boundary; what a person switched
        off or on for this session stays so while its entry does not say otherwise.
        """
        return self._fleet.reconcile(specs)

    async def settled(self) -> None:
        """Wait until the first start of each server came to something.

        A server that failed and is tried again counts: nobody waits for its next tries. A lazy
        one whose tools are known has no start to wait for.
        """
        for server in self._fleet.all():
            await server.settled.wait()

    async def wake(self, names: Iterable[str]) -> None:
        """Bring up those of ``names`` that sleep, and wait for what comes of it."""
        await self._fleet.wake(names)

    def retry(self, name: str) -> None:
        """Start a server that failed or waits for a login, unless it runs by now.

        Raises:
            UsageError: there is no such server.
        """
        self._fleet.retry(name)

    def retrust(self, name: str) -> None:
        """Ask again whether a server may start: a person decided about its entry.

        One that serves while a change of its entry was held is replaced now.

        Raises:
            UsageError: there is no such server.
        """
        self._fleet.retrust(name)

    def held(self) -> tuple[HeldChange, ...]:
        """Give every definition that is not offered until the person looked at it."""
        return tuple(change for server in self._fleet.all() for change in server.held)

    def withheld(self, name: str) -> tuple[Tool, ...]:
        """Give the tools among it, of one server.

        Raises:
            UsageError: there is no such server.
        """
        return self._fleet.get(name).withheld

    def repin(self) -> None:
        """Compare all definitions anew: a person decided about some, or ``mcp.lock`` changed."""
        for server in self._fleet.all():
            server.recheck()

    async def restart(self, name: str) -> None:
        """Replace a server: the new one is up before the old one goes; asked twice, done once.

        Raises:
            UsageError: there is no such server, or it is disabled.
            ServerError: the new one failed; the old one serves on.
        """
        await self._fleet.restart(name)

    async def sign_in(self, command: SignInCommand) -> None:
        """Sign in to a server, or out; the page to open and the end of it come as events.

        Raises:
            UsageError: there is no such server, or nothing to sign in to.
            ServerError: signing in did not work.
        """
        if self._desk is None:
            raise UsageError("Nobody can sign in here", fix=f"kage mcp login {command.name}")
        await self._desk.handle(command)

    async def set_enabled(self, name: str, enabled: bool) -> None:
        """Start or stop a server for this session; running calls may end first.

        Raises:
            UsageError: there is no such server.
        """
        await self._fleet.set_enabled(name, enabled)

    @property
    def changed(self) -> asyncio.Event:
        """Set while :meth:`apply` has something to do."""
        return self._changed

    async def apply(self, *, wait_restarts: bool = True) -> tuple[ToolSwap, ...]:
        """Give what the registry has to take over, at a boundary.

        Args:
            wait_restarts: Wait for restarts under way, so that the next turn has the new tools.
        """
        if wait_restarts:
            await self._fleet.restarted()
        self._changed.clear()
        return tuple(ToolSwap(server=name, tools=tools) for name, tools in self._fleet.take())

    async def set_log_level(self, name: str, level: str) -> None:
        """Choose what a server is asked to tell of itself, for this session; "" for nothing more.

        Raises:
            UsageError: there is no such server, or it keeps no log.
        """
        server = self._fleet.get(name)
        server.spec = dataclasses.replace(server.spec, log_level=level)
        if server.connection is not None and not await server.connection.set_log_level(level):
            raise UsageError(f"{name} offers no log messages", fix="Its stderr is in /mcp log")
        told = f"asked for log messages from {level} up" if level else "asked for no more messages"
        self._publish(Noticed(level=Level.INFO, what=f"{name} is {told}"))

    def statuses(self) -> tuple[ServerStatus, ...]:
        """Describe every server, in the order of the configuration."""
        return tuple(server.status() for server in self._fleet.all())

    async def ping(self, name: str) -> bool:
        """Ask a server whether it lives, the way its era has it; False when it does not answer.

        Raises:
            UsageError: there is no such server.
        """
        live = self._fleet.get(name).connection
        return live is not None and await live.ping()

    def log(self, name: str) -> tuple[str, ...]:
        """Give the last stderr lines of a server kage holds in memory.

        Raises:
            UsageError: there is no such server.
        """
        return self._fleet.get(name).journal.lines()

    def offers(self, name: str) -> dict[str, Any]:
        """Give capabilities, prompts, resources and templates of a server, raw as it says them.

        Raises:
            UsageError: there is no such server.
        """
        found = self._fleet.get(name).offers
        empty: dict[str, object] = {"capabilities": {}, "prompts": [], "resources": []}
        return {**empty, "templates": [], **found}

    def instructions(self) -> tuple[tuple[str, str], ...]:
        """Give what connected servers want the model to know, each capped."""
        found: list[tuple[str, str]] = []
        for server in self._fleet.all():
            said = server.instructions.strip()
            held = any(change.name == INSTRUCTIONS for change in server.held)
            if server.spec.instructions and said and not held:
                found.append((server.spec.name, cap(said, MAX_INSTRUCTIONS)))
        return tuple(found)

    async def stop(self) -> None:
        """End every server, all at once, within 6 s whatever they do."""
        if self._desk is not None:
            await self._desk.stop()
        await self._fleet.stop()

    # ---- inside

    def _make(self, spec: ServerSpec) -> Server:
        journal = Journal(spec.name, folder=self._journals, redact=self._redactor)
        server = Server(spec, self._home, journal)
        server.beside.updated = functools.partial(self.beside.changed, spec.name)
        return server

    def _tell(self, status: ServerStatus, previous: ServerState | None) -> None:
        self._publish(ServerChanged(status=status, previous=previous))
