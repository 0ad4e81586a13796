"""What stands for one server: the connection that serves, the tools over it, what is told of it.

It lives by the will of others: ``life`` decides when a connection comes and goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from kage.config.schema import ServerSpec
from kage.core.ids import new_id
from kage.core.pins import INSTRUCTIONS, Cause
from kage.core.servers import Fault, ServerState
from kage.mcp.client import faults
from kage.mcp.client.connections.connection import Connection
from kage.mcp.client.faults import StartFailed
from kage.mcp.client.servers.bringup import Home, bring_up
from kage.mcp.client.servers.chores import Chores
from kage.mcp.client.servers.journal import Journal
from kage.mcp.client.servers.judging import judge
from kage.mcp.client.servers.line import Line
from kage.mcp.client.servers.manifest import Manifest
from kage.mcp.client.servers.rest import Rest
from kage.mcp.client.servers.telling import Telling
from kage.mcp.client.servers.tending import Tending
from kage.mcp.client.servers.wares import Wares


class Holding:
    """Holds the connections of one server: the one that serves, and one replaced that still does.

    Args:
        tend: Does beside a connection what else it needs, until it is closed.
    """

    def __init__(
        self,
        spec: ServerSpec,
        home: Home,
        journal: Journal,
        *,
        tend: Callable[[Connection], Coroutine[None, None, None]],
    ) -> None:
        self.spec = spec
        self.settled = asyncio.Event()  # the outcome of the first start is known
        self._writing = asyncio.Lock()  # held while the manifest is written
        self._judging = asyncio.Lock()  # held while a list is compared with what is known
        self._told: frozenset[tuple[str, str]] = frozenset()  # name and digest of what is held
        self.serving: Connection | None = None  # whose tools are, or will be, registered
        self.leaving: Connection | None = None  # replaced, serves until the next boundary
        self.asleep = False  # without a process, and to be woken by the next call
        self.rest = Rest(home.clock)
        self.chores = Chores()
        self.wares = Wares(
            rest=self.rest, servers=home.servers, wake=self._woken, changed=home.wake
        )
        self.telling = Telling(spec, home, self.wares)
        self._home = home
        self._journal = journal
        self._tend = tend
        self._tending: Tending | None = None

    async def bring_up(self, line: str = "") -> Connection:
        """Open a connection for ``line``, else for one of its own; what it offers is judged.

        Raises:
            StartFailed: it did not come up.
        """
        tending = Tending(self._home.clock, listed=self._relisted, unlisted=self._unlisted)
        connection = await bring_up(
            self.spec,
            self._home,
            self._journal,
            line=line or new_id("c"),
            changed=tending.changed,
            retire=self.retire,
        )
        try:
            await self._judge(connection)
        except BaseException:  # goes on; what was opened must be closed
            self.retire(connection)
            raise
        self._tending = tending
        self.chores.spawn(tending.run(connection))
        self.chores.spawn(self._tend(connection))
        return connection

    def adopt(self, connection: Connection) -> None:
        """Make ``connection`` the one whose tools are offered from the next boundary on."""
        old, self.serving = self.serving, connection
        if self.leaving is not None:  # replaced twice between two boundaries
            if old is not None:
                self.retire(old)
        else:
            self.leaving = old
        self.asleep = False
        self.telling.live = connection
        self.wares.carry(self.spec, connection)
        self._remember(connection)
        self._tell_held()
        self.telling.to(ServerState.CONNECTED)
        self.settled.set()
        self.rest.awake(self.spec.idle_timeout)
        self.rest.arrived(connection)

    def detach(self) -> tuple[Connection, ...]:
        """Withdraw the tools and give up the connections, which somebody has to close."""
        held = tuple(item for item in (self.serving, self.leaving) if item is not None)
        self.serving = self.leaving = None
        self.telling.live = self.telling.known = None
        self.wares.withdraw()
        return held

    def let_go(self, serving: Connection) -> None:
        """Close the connection that serves; nothing serves for now."""
        self.serving = self.telling.live = None
        self.rest.asleep()
        self.retire(serving)

    async def rest_on(self, known: Manifest) -> None:
        """Sleep from the start, on what was offered last time and may be offered now."""
        judged = await judge(self._home.pins, self.spec, known.listing, known.instructions)
        self.doze(known)
        self.wares.offer(self.spec, new_id("c"), entry=known.entry, judged=judged)
        self._tell_held()
        self.telling.to(ServerState.IDLE)
        self.settled.set()

    def doze(self, known: Manifest) -> None:
        """Sleep: serve on what is known, until the next call."""
        self.telling.known = known
        self.asleep = True

    def give_up(self, state: ServerState, fault: Fault) -> None:
        """Serve nothing any more, and say why."""
        self.asleep = False
        self.telling.known = None
        self.wares.withdraw()
        self.telling.to(state, fault)
        self.settled.set()
        self.rest.arrived(StartFailed(fault))

    def readjust(self) -> None:
        """Put settings in force that need no other process."""
        if self.serving is not None:
            self.serving.adjust(self.spec)
            self.rest.awake(self.spec.idle_timeout)
            if self._tending is not None:
                self._tending.adjust(self.spec)
        self.wares.refilter(self.spec)
        self.telling.to(self.telling.state, self.telling.fault)
        self.recheck()

    def recheck(self) -> None:
        """Compare what is offered with what the person knows by now."""
        if self._home.pins is not None:
            self.chores.spawn(self._rechecked())

    def retire(self, connection: Connection) -> None:
        """Close a connection; what runs on it ends as unknown."""
        self.wares.drop(connection)
        self.chores.spawn(connection.close())

    def drain(self, connection: Connection) -> None:
        """Close a connection once its running calls have ended."""
        self.chores.spawn(self._drain(connection))

    def remember(self) -> None:
        """Write down what a lazy server offers now, for the next time."""
        if self.serving is not None:
            self._remember(self.serving)

    # ---- inside

    async def _woken(self, line: Line) -> Connection:
        """Give a connection for a line nothing carries.

        Raises:
            StartFailed: the server does not sleep, or did not come up.
        """
        current = self.wares.line
        if self.asleep and current is not None and current.id == line.id:
            return await self.rest.arrival()
        raise StartFailed(self.telling.fault or faults.down(self.spec.name, self.telling.state))

    def _relisted(self) -> None:
        """A new list was fetched; one that says the same is no change."""
        self.chores.spawn(self._rechecked())

    async def _rechecked(self) -> None:
        async with self._judging:
            live, known, line = self.serving, self.telling.known, self.wares.line
            if live is not None and not live.closed.is_set():
                await self._judge(live)
                if self.serving is live and self.wares.carry(self.spec, live):
                    self._remember(live)
                    self._tell_held()
                    self.telling.to(ServerState.CONNECTED)
            elif self.asleep and known is not None and line is not None:
                judged = await judge(self._home.pins, self.spec, line.listing, known.instructions)
                if self.wares.line is line and judged != self.wares.judged:
                    self.wares.offer(self.spec, line.id, entry=line.entry, judged=judged)
                    self._tell_held()
                    self.telling.to(self.telling.state, self.telling.fault)

    async def _judge(self, connection: Connection) -> None:
        connection.judged = await judge(
            self._home.pins, self.spec, connection.listing, connection.instructions
        )

    def _tell_held(self) -> None:
        """Tell what a person has to see: once, until it is another or was gone meanwhile."""
        verdict = self.wares.judged.verdict
        names = {tool.original for tool in self.wares.withheld} | {INSTRUCTIONS}
        held = [
            change
            for change in verdict.held.values()
            if change.name in names and not change.refused and change.cause is not Cause.DISABLED
        ]
        found = [*held, *verdict.told]
        new = tuple(one for one in found if (one.name, one.digest) not in self._told)
        self._told = frozenset((one.name, one.digest) for one in found)
        if new:
            self._home.tell(new)

    def _unlisted(self, fault: Fault) -> None:
        self.telling.to(self.telling.state, fault)

    def _remember(self, connection: Connection) -> None:
        """Write down what it offers: for a lazy start, for the shell's completion and ``why``."""
        self.chores.spawn(self._write_down(connection))

    async def _write_down(self, connection: Connection) -> None:
        async with self._writing:  # or an older state could be written last
            known = manifest_of(self.spec, connection)
            if why := await asyncio.to_thread(self._home.manifests.save, known):
                self._journal.trace(f"its manifest was not kept: {why}")

    async def _drain(self, connection: Connection) -> None:
        try:
            limit = max(self.spec.tool_max_time, 1.0)
            await self.chores.patiently(connection.drain(limit))
        finally:
            self.wares.drop(connection)
            await connection.close()


def manifest_of(spec: ServerSpec, connection: Connection) -> Manifest:
    """Give what a connection offers, to be known while there is none."""
    return Manifest(
        server=spec.name,
        origin=spec.origin,
        entry=connection.recipe.entry,
        listing=connection.listing,
        instructions=connection.instructions,
        protocol=connection.protocol,
        version=connection.version,
        offers=connection.offer_lists.raw if connection.offer_lists is not None else {},
    )
