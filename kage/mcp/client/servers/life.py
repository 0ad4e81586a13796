"""The life of one server: it comes up, serves, tires or breaks, and comes back.

One task lives it. A server that sleeps has no process; its tools stay, and the first call to one
of them wakes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from kage.core.servers import Fault, ServerState
from kage.mcp.client import faults
from kage.mcp.client.connections.connection import Connection
from kage.mcp.client.faults import StartFailed
from kage.mcp.client.servers.backoff import Backoff
from kage.mcp.client.servers.bringup import Home, Untrusted, recipe_for
from kage.mcp.client.servers.holding import Holding, manifest_of
from kage.mcp.client.servers.journal import Journal


class Life:
    """Decides what becomes of the holding of one server."""

    def __init__(self, holding: Holding, home: Home, journal: Journal) -> None:
        self._held = holding
        self.replacing = asyncio.Lock()  # held by whoever puts another connection in place
        self._home = home
        self._journal = journal
        self._task: asyncio.Task[None] | None = None

    # ---- begun and ended by others

    def begin(self, *, lazy: bool) -> None:
        """Live from the start; ``lazy``: rest on what the server offered last time, if known."""
        self._held.telling.backoff = Backoff(self._held.spec.restart)
        self._run(self._begin(lazy=lazy))

    def go_on(self, connection: Connection) -> None:
        """Live on with another connection."""
        self._held.telling.backoff = Backoff(self._held.spec.restart)
        self._held.adopt(connection)
        self._run(self._keep())

    async def end(self) -> None:
        """Stop living; connections stay as they are."""
        task, self._task = self._task, None
        self._held.rest.asleep()
        self._held.asleep = False
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.wait([task])
        self._held.rest.arrived(StartFailed(faults.down(self._held.spec.name, ServerState.STOPPED)))

    # ---- lived by its task

    def _run(self, life: Coroutine[None, None, None]) -> None:
        self._task = asyncio.create_task(self._guard(life), name=f"server {self._held.spec.name}")

    async def _guard(self, life: Coroutine[None, None, None]) -> None:
        try:
            await life
        except Exception as error:  # boundary: whatever it was, this server is down and says so
            self._held.give_up(ServerState.FAILED, faults.surprise(self._held.spec.name, error))

    async def _begin(self, *, lazy: bool) -> None:
        try:
            known = lazy and await self._remembered()
        except StartFailed as error:
            self._stop_for(error)
            return
        if not known:
            if lazy:
                self._held.telling.to(ServerState.CONNECTING)
            if not await self._come_up():
                return
        await self._keep()

    async def _remembered(self) -> bool:
        """Offer what the server offered last time; whether that is known."""
        recipe = recipe_for(self._held.spec, self._home)
        load = self._home.manifests.load
        known = await asyncio.to_thread(
            load, self._held.spec.name, self._held.spec.origin, recipe.entry
        )
        if known is None:
            return False
        await self._held.rest_on(known)
        return True

    async def _come_up(self, fault: Fault | None = None) -> bool:
        """Start it until it is up; False when that was given up, which is told.

        Args:
            fault: Why it is down; None: this is the first start, which waits for nothing.
        """
        while True:
            if fault is not None:
                delay = self._held.telling.backoff.next()
                if delay is None:
                    self._held.give_up(ServerState.FAILED, fault)
                    return False
                self._held.telling.to(ServerState.CONNECTING, fault)
                self._held.settled.set()
                await self._home.clock.sleep(delay)
            try:
                self._held.adopt(await self._held.bring_up())
            except StartFailed as error:
                if self._stop_for(error):
                    return False
                fault = error.fault
            else:
                return True

    async def _keep(self) -> None:
        """Serve until it breaks or tires; bring it back until there are no more tries."""
        while True:
            serving = self._held.serving
            if serving is None:
                await self._held.rest.wanted.wait()
                if not await self._wake_up():
                    return
                continue
            await self._broken_or_tired(serving)
            async with self.replacing:  # a restart under way may bring the next one itself
                if not serving.closed.is_set():
                    self._fall_asleep(serving)
                    continue
                fault = self._lost(serving)
            if self._stopped(serving, fault):
                return
            if not self._held.asleep and not await self._come_up(fault):
                return

    async def _broken_or_tired(self, serving: Connection) -> None:
        ends = [
            asyncio.ensure_future(serving.closed.wait()),
            asyncio.ensure_future(self._held.rest.tired.wait()),
        ]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()

    def _fall_asleep(self, serving: Connection) -> None:
        """End the process of a server nobody uses, unless somebody just began to."""
        if not self._held.rest.tired.is_set() or self._held.rest.busy or serving.open_calls:
            self._held.rest.awake(self._held.spec.idle_timeout)
            return
        self._journal.trace(f"nobody used it for {self._held.spec.idle_timeout:g} s; it sleeps")
        known = manifest_of(self._held.spec, serving)
        self._held.let_go(serving)
        self._held.doze(known)
        self._held.telling.to(ServerState.IDLE)

    def _lost(self, serving: Connection) -> Fault:
        """Let go of a connection that ended by itself; gives why it did."""
        self._held.telling.backoff.lived(self._home.clock.now() - serving.since)
        known = manifest_of(self._held.spec, serving)
        self._held.let_go(serving)
        fault = serving.death or faults.down(self._held.spec.name, self._held.telling.state)
        if self._held.spec.start != "lazy":
            self._held.wares.withdraw()
        elif not serving.needs_auth and self._held.telling.backoff.next() is not None:
            self._held.doze(known)  # the next call brings it back
            self._held.telling.to(ServerState.IDLE, fault)
        return fault

    def _stopped(self, serving: Connection, fault: Fault) -> bool:
        """Give up on a server that is not to be brought back; whether it was."""
        if serving.needs_auth:
            self._held.give_up(ServerState.NEEDS_AUTH, fault)
        elif self._held.spec.start == "lazy" and not self._held.asleep:
            self._held.give_up(ServerState.FAILED, fault)
        else:
            return False
        return True

    async def _wake_up(self) -> bool:
        """Start it for the calls that wait; False when there are no more tries."""
        self._held.telling.to(ServerState.CONNECTING)
        line = self._held.wares.line
        try:
            connection = await self._held.bring_up(line.id if line is not None else "")
        except StartFailed as error:
            if self._stop_for(error):
                return False
            if self._held.telling.backoff.next() is None:
                self._held.give_up(ServerState.FAILED, error.fault)
                return False
            self._held.rest.arrived(error)
            self._held.telling.to(ServerState.IDLE, error.fault)
            return True
        self._held.adopt(connection)
        return True

    def _stop_for(self, error: StartFailed) -> bool:
        """Give up where another try ends the same way; whether it did."""
        if isinstance(error, Untrusted):
            self._held.give_up(ServerState.UNTRUSTED, error.fault)
        elif error.needs_auth:
            self._held.give_up(ServerState.NEEDS_AUTH, error.fault)
        elif error.hopeless:
            self._held.give_up(ServerState.FAILED, error.fault)
        else:
            return False
        return True
