"""What a live connection needs from time to time: a new list, a look at its health."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from kage.config.schema import ServerSpec
from kage.core.servers import Fault, Stage
from kage.mcp.client import faults
from kage.mcp.client.calling.talk import PING_LIMIT
from kage.mcp.client.connections.connection import Connection
from kage.mcp.client.faults import StartFailed
from kage.mcp.client.servers.clock import Clock

_DEBOUNCE = 0.25  # seconds after a change notice until the list is fetched
_MAX_WAIT = 60.0  # seconds between two tries to subscribe
_MAX_GAP = 5.0  # seconds the gap grows to while notices keep coming


class Tending:
    """Runs beside one connection.

    Args:
        listed: Called after a new list was fetched.
        unlisted: Called with the fault when it could not be; the old one stays.
    """

    def __init__(
        self, clock: Clock, *, listed: Callable[[], None], unlisted: Callable[[Fault], None]
    ) -> None:
        self._clock = clock
        self._listed = listed
        self._unlisted = unlisted
        self._dirty = asyncio.Event()
        self._connection: Connection | None = None
        self._health: asyncio.Task[None] | None = None

    def changed(self) -> None:
        """Take note that the server's tools changed."""
        self._dirty.set()

    def adjust(self, spec: ServerSpec) -> None:
        """Look at the connection's health as ``spec`` says from now on."""
        if self._health is not None:
            self._health.cancel()
            self._health = None
        if self._connection is not None and spec.health_interval > 0:
            work = self._check(self._connection, spec.health_interval)
            self._health = asyncio.create_task(work, name="health")

    async def run(self, connection: Connection) -> None:
        """Tend ``connection`` until it is closed."""
        self._connection = connection
        tasks = [asyncio.create_task(self._relist(connection), name="relist")]
        if connection.notifies:
            tasks.append(asyncio.create_task(self._subscribe(connection), name="subscribe"))
        self.adjust(connection.recipe.spec)
        try:
            await connection.closed.wait()
        finally:
            self._connection = None
            if self._health is not None:
                tasks.append(self._health)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _relist(self, connection: Connection) -> None:
        """Fetch the list after changes: at most one at a time, and the last state is kept."""
        gap = _DEBOUNCE
        while True:
            await self._dirty.wait()
            await asyncio.sleep(gap)
            self._dirty.clear()
            try:
                await connection.list_tools()
            except StartFailed as error:
                if not connection.closed.is_set():
                    self._unlisted(error.fault)
            else:
                self._listed()
            gap = min(gap * 2, _MAX_GAP) if self._dirty.is_set() else _DEBOUNCE

    async def _subscribe(self, connection: Connection) -> None:
        """Keep a subscription to change notices."""
        from mcp import MCPError

        delay = 1.0
        while True:
            start = asyncio.get_running_loop().time()
            with contextlib.suppress(MCPError, RuntimeError, TimeoutError):
                await connection.subscribe()
            if asyncio.get_running_loop().time() - start > _MAX_WAIT:
                delay = 1.0
            await asyncio.sleep(delay)
            delay = min(delay * 2, _MAX_WAIT)
            self._dirty.set()  # what was missed meanwhile is not sent again

    async def _check(self, connection: Connection, interval: float) -> None:
        """Ask for a sign of life while no call is open; a busy call has limits of its own.

        A question goes out each interval, also while the one before waits for its answer: a
        server is found out one answer limit after the last question it may miss.
        """
        asked: set[asyncio.Task[None]] = set()
        missed = 0

        async def ask() -> None:
            nonlocal missed
            missed = 0 if await connection.ping() or connection.open_calls else missed + 1
            if missed >= connection.misses and not connection.closed.is_set():
                name = connection.recipe.spec.name
                connection.fail(faults.silent(name, Stage.PING, PING_LIMIT))

        try:
            while not connection.closed.is_set():
                await self._clock.sleep(interval)
                if len(asked) < connection.misses and not connection.open_calls:
                    task = asyncio.create_task(ask(), name="ping")
                    asked.add(task)
                    task.add_done_callback(asked.discard)
        finally:
            for task in asked:
                task.cancel()
