"""One configured server: what the manager can ask it, and tell it to do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kage.config.schema import ServerSpec
from kage.core.pins import INSTRUCTIONS, HeldChange
from kage.core.servers import Fault, ServerState, ServerStatus
from kage.mcp.client import faults
from kage.mcp.client.connections.connection import Connection
from kage.mcp.client.faults import StartFailed
from kage.mcp.client.offers.beside import Beside
from kage.mcp.client.servers.bringup import Home
from kage.mcp.client.servers.holding import Holding
from kage.mcp.client.servers.journal import Journal
from kage.mcp.client.servers.life import Life
from kage.mcp.client.servers.rest import Rest
from kage.mcp.client.servers.wares import Tools

_SAYING_WHY = (  # states that say more than that it was stopped
    ServerState.DISABLED,
    ServerState.FAILED,
    ServerState.NEEDS_AUTH,
    ServerState.UNTRUSTED,
)


class Server:
    """One entry and its life.

    A lazy server serves without a connection: its tools are known from its manifest, and the
    first call to one of them brings it up.
    """

    def __init__(self, spec: ServerSpec, home: Home, journal: Journal) -> None:
        self.journal = journal
        self._home = home
        self.beside: Beside = Beside(self, self._announce)
        self._held: Holding = Holding(spec, home, journal, tend=self.beside.tend)
        self._life: Life = Life(self._held, home, journal)
        self.settled: asyncio.Event = self._held.settled  # the outcome of the first start is known
        self._adjusted = False  # its settings changed; in force from the next boundary

    # ---- what others ask

    @property
    def spec(self) -> ServerSpec:
        """Its entry."""
        return self._held.spec

    @spec.setter
    def spec(self, spec: ServerSpec) -> None:
        self._held.spec = spec
        self._held.telling.about(spec)

    @property
    def state(self) -> ServerState:
        """How it is doing."""
        return self._held.telling.state

    @property
    def rest(self) -> Rest:
        """What keeps it awake: hold it while something of it is subscribed to."""
        return self._held.rest

    @property
    def connection(self) -> Connection | None:
        """The connection that serves, None when there is none."""
        serving = self._held.serving
        return serving if serving is not None and not serving.closed.is_set() else None

    @property
    def instructions(self) -> str:
        """What it wants the model to know, also while it sleeps; "" when it is down."""
        return self.status().instructions

    @property
    def offers(self) -> Mapping[str, Any]:
        """Capabilities, prompts, resources and templates, also while it sleeps; raw."""
        live, known = self.connection, self._held.telling.known
        if live is not None and live.offer_lists is not None:
            return live.offer_lists.raw
        return known.offers if self._held.asleep and known is not None else {}

    @property
    def held(self) -> tuple[HeldChange, ...]:
        """What of it is not offered until the person looked at it."""
        held = self._held.wares.judged.verdict.held
        names = {tool.original for tool in self.withheld} | {INSTRUCTIONS}
        return tuple(change for name, change in held.items() if name in names)

    @property
    def withheld(self) -> Tools:
        """The tools among it."""
        return self._held.wares.withheld

    def recheck(self) -> None:
        """Compare what it offers with what the person knows by now."""
        self._held.recheck()

    def status(self) -> ServerStatus:
        """Describe it as of now."""
        return self._held.telling.status()

    async def reach(self) -> Connection:
        """Give the live connection, starting a server that sleeps.

        Do it, and what it is wanted for, inside ``rest.using()``.

        Raises:
            StartFailed: it is not up, and not to be had by asking.
        """
        if (live := self.connection) is not None:
            return live
        if self._held.asleep:
            return await self.rest.arrival()
        fault = self._held.telling.fault
        raise StartFailed(fault or faults.down(self.spec.name, self.state))

    def take(self) -> Tools | None:
        """Give the tools that replace what is registered, once; None: nothing changed."""
        held = self._held
        old, held.leaving = held.leaving, None
        if old is not None:
            if held.serving is not None:
                held.telling.draining(old)
            held.drain(old)
        if self._adjusted:
            self._adjusted = False
            held.readjust()
        return held.wares.take()

    # ---- what the manager tells it to do

    def start(self, *, now: bool = False) -> None:
        """Begin to live; the outcome is published.

        Args:
            now: Bring a lazy one up too, for once.
        """
        self.settled.clear()
        if self.spec.disabled:
            self._held.telling.to(ServerState.DISABLED)
            self.settled.set()
            return
        lazy = self.spec.start == "lazy" and not now
        self._held.telling.to(ServerState.IDLE if lazy else ServerState.CONNECTING)
        self._life.begin(lazy=lazy)

    async def restart(self) -> None:
        """Bring a new connection up, then let the old one go; alone, start anew.

        Raises:
            ServerError: the new one did not come up; the old one, if there was one, serves on.
        """
        async with self._life.replacing:
            if self.connection is None or self.spec.restart.exclusive:
                await self._start_over()
                return
            try:
                new = await self._held.bring_up()
            except StartFailed as error:
                what = f"{error.fault.what}; the old one serves on"
                fault = replace(error.fault, what=what)
                raise faults.to_error(self.spec.name, fault) from None
            try:
                await self._life.end()  # it watches the old one
            except BaseException:  # goes on; the new one must not be left
                self._held.retire(new)
                raise
            self._life.go_on(new)

    def adjust(self, spec: ServerSpec) -> None:
        """Take over an entry that starts the same process; in force from the next boundary."""
        self.spec = spec
        self._held.telling.backoff.adjust(spec.restart)
        self._adjusted = True
        self._home.wake()

    def sign_in(self, fault: Fault | None) -> None:
        """Say that a person has to sign in for it to go on; None: that they need not any more."""
        if self.connection is not None:
            state = ServerState.CONNECTED if fault is None else ServerState.NEEDS_AUTH
            self._held.telling.to(state, fault)

    def sign_out(self, fault: Fault) -> None:
        """End a connection that was made with a sign-in that is gone; its calls end as unknown."""
        if self.connection is not None:
            self.connection.fail(fault, needs_auth=True)

    async def disable(self) -> None:
        """Withdraw the tools; the process ends once its running calls have."""
        await self._withdraw()
        self._held.telling.to(ServerState.DISABLED)
        self.settled.set()

    async def remove(self) -> None:
        """Go for good; the process ends once its running calls have."""
        await self._withdraw()
        await self._held.chores.done()
        self.journal.close()

    async def end(self) -> None:
        """Stop everything at once; running calls end as unknown."""
        await self._life.end()
        for connection in self._held.detach():
            self._held.retire(connection)
        await self._held.chores.done(hurry=True)
        self.journal.close()
        if self.state not in _SAYING_WHY:
            self._held.telling.to(ServerState.STOPPED)
        self.settled.set()

    # ---- inside

    def _announce(self) -> None:
        """Tell that it offers something else beside tools, and keep it for when it sleeps."""
        self._held.remember()
        self._held.telling.to(self.state, self._held.telling.fault)

    async def _start_over(self) -> None:
        if self.connection is not None:
            self.journal.trace("restart.exclusive: the old one is stopped first")
        await self.end()
        self.start(now=True)
        await self.settled.wait()
        fault = self._held.telling.fault
        if self.state is not ServerState.CONNECTED and fault is not None:
            raise faults.to_error(self.spec.name, fault)

    async def _withdraw(self) -> None:
        await self._life.end()
        for connection in self._held.detach():
            self._held.drain(connection)
