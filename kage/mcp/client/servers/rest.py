"""When a server may sleep: who uses it, how long nobody did, and who waits for it to wake."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from kage.mcp.client.connections.connection import Connection
from kage.mcp.client.faults import StartFailed
from kage.mcp.client.servers.clock import Clock


class Rest:
    """Counts uses of one server and measures the silence between them.

    ``wanted`` is set while somebody waits for the server to be up; ``tired`` once nobody used it
    for the idle time. One timer at most, and none while it is in use.
    """

    def __init__(self, clock: Clock) -> None:
        self.wanted = asyncio.Event()
        self.tired = asyncio.Event()
        self._clock = clock
        self._limit = 0.0  # seconds, 0: it never tires
        self._uses = 0
        self._holds: set[str] = set()
        self._last = 0.0
        self._timer: asyncio.Task[None] | None = None
        self._waiting: asyncio.Future[Connection] | None = None

    @property
    def busy(self) -> bool:
        """Whether it is in use, or held."""
        return self._uses > 0 or bool(self._holds)

    @contextlib.contextmanager
    def using(self) -> Iterator[None]:
        """Keep it awake for the time of the block."""
        self._uses += 1
        self.tired.clear()
        try:
            yield
        finally:
            self._uses -= 1
            self._touch()

    def hold(self, key: str) -> None:
        """Keep it awake until ``key`` is released: something is subscribed to."""
        self._holds.add(key)
        self.tired.clear()

    def release(self, key: str) -> None:
        """Let go of ``key``."""
        self._holds.discard(key)
        self._touch()

    def awake(self, limit: float) -> None:
        """Measure the silence from now on; ``limit`` is the idle time in seconds, 0: none."""
        self._limit = limit
        self.asleep()
        self._touch()

    def asleep(self) -> None:
        """Measure nothing."""
        self.tired.clear()
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    async def arrival(self) -> Connection:
        """Say that the server is wanted and wait until it is up; all who wait share one start.

        Raises:
            StartFailed: it did not come up.
        """
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_future()
        self.wanted.set()
        return await asyncio.shield(self._waiting)

    def arrived(self, outcome: Connection | StartFailed) -> None:
        """Tell everybody who waits how the start went."""
        self.wanted.clear()
        waiting, self._waiting = self._waiting, None
        if waiting is None or waiting.done():
            return
        if isinstance(outcome, StartFailed):
            waiting.set_exception(outcome)
            waiting.exception()  # those who waited may all have been cancelled
        else:
            waiting.set_result(outcome)

    def _touch(self) -> None:
        self._last = self._clock.now()
        if self._limit > 0 and not self.busy and self._timer is None:
            self._timer = asyncio.create_task(self._tire(), name="idle timer")

    async def _tire(self) -> None:
        """Sleep for what is left of the idle time, and again when it was used meanwhile."""
        try:
            while not self.busy:
                left = self._last + self._limit - self._clock.now()
                if left <= 0:
                    self.tired.set()
                    return
                await self._clock.sleep(left)
        finally:
            if self._timer is asyncio.current_task():
                self._timer = None
