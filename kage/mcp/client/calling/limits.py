"""The two limits of a call: on silence, pushed back by progress, and on the whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from kage.config.schema import ServerSpec


@contextmanager
def resting(timer: asyncio.Timeout, seconds: float) -> Iterator[None]:
    """Stop ``timer`` inside; afterwards it has ``seconds`` again, 0: no end."""
    _reschedule(timer, None)
    try:
        yield
    finally:
        _reschedule(timer, asyncio.get_running_loop().time() + seconds if seconds > 0 else None)


def _reschedule(timer: asyncio.Timeout, when: float | None) -> None:
    with suppress(RuntimeError):  # it is over already
        timer.reschedule(when)


class CallClock:
    """Times one call; both limits rest while the server waits for the person."""

    def __init__(self, spec: ServerSpec, tool: str) -> None:
        loop = asyncio.get_running_loop()
        self._time = loop.time
        self._start = loop.time()
        self._idle = spec.tool_timeouts.get(tool, spec.tool_timeout)
        self._hard = spec.tool_max_time
        self._rested = 0.0  # seconds
        self._pauses = 0
        self._paused_at = 0.0
        self._counting = False
        self._timeout = asyncio.timeout_at(self._due())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """End what runs inside when a limit has passed.

        Raises:
            TimeoutError: one has.
        """
        async with self._timeout:
            self._counting = True
            try:
                yield
            finally:
                self._counting = False

    def beat(self) -> None:
        """Start the silence anew."""
        if self._counting and not self._pauses and not self._timeout.expired():
            self._timeout.reschedule(self._due())

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let both limits rest."""
        self._pauses += 1
        if self._pauses == 1:
            self._paused_at = self._time()
            if self._counting and not self._timeout.expired():
                self._timeout.reschedule(None)
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._rested += self._time() - self._paused_at
                self.beat()

    @property
    def expired(self) -> bool:
        """Whether a limit of ours ended the call."""
        return self._timeout.expired()

    @property
    def elapsed(self) -> float:
        """Seconds since the call began, without those it rested."""
        return self._time() - self._start - self._rested

    @property
    def hit_hard(self) -> bool:
        """Whether the limit on the whole call is the one that passed."""
        return self._hard > 0 and self.elapsed >= self._hard

    @property
    def limit(self) -> float:
        """The limit that passed, in seconds."""
        return self._hard if self.hit_hard else self._idle

    def _due(self) -> float | None:
        """Say when the nearer limit passes; None without limits."""
        idle = self._time() + self._idle if self._idle > 0 else None
        end = self._start + self._hard + self._rested if self._hard > 0 else None
        known = [moment for moment in (idle, end) if moment is not None]
        return min(known) if known else None
