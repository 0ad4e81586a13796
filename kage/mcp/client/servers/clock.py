"""The time a server's life goes by; a test puts its own in place and waits for nothing."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """What tells the time and lets it pass."""

    def now(self) -> float:
        """Give monotonic seconds."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait ``seconds``; cancelling ends the wait."""
        ...


class WallClock:
    """The machine's own time."""

    def now(self) -> float:
        """Give monotonic seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait ``seconds``."""
        await asyncio.sleep(seconds)
