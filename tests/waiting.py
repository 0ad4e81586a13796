"""Wait for something to become true, with a deadline instead of a sleep."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

DEADLINE = 40.0  # seconds; generous, since machines are shared


def wait_for(probe: Callable[[], object], *, deadline: float = DEADLINE, what: str = "") -> None:
    """Poll ``probe`` until it is truthy.

    Raises:
        AssertionError: it never was.
    """
    end = time.monotonic() + deadline
    while not probe():
        if time.monotonic() > end:
            raise AssertionError(f"never happened: {what or probe}")
        time.sleep(0.02)


async def until(probe: Callable[[], object], *, deadline: float = DEADLINE, what: str = "") -> None:
    """Poll ``probe`` until it is truthy, on the running loop.

    Raises:
        AssertionError: it never was.
    """
    end = time.monotonic() + deadline
    while not probe():
        if time.monotonic() > end:
            raise AssertionError(f"never happened: {what or probe}")
        await asyncio.sleep(0.01)
