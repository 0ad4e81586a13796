"""The small tasks of one server that nobody waits for until it ends: closing, draining, tending."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine


class Chores:
    """Keeps a reference to every task until it is done; none is ever cancelled."""

    def __init__(self) -> None:
        self._work: set[asyncio.Task[None]] = set()
        self._hurry = asyncio.Event()

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Do ``work``, which ends by itself."""
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def patiently(self, wait: Coroutine[None, None, None]) -> None:
        """Wait for others, but no longer than until there is a hurry."""
        waits = [asyncio.ensure_future(wait), asyncio.ensure_future(self._hurry.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()

    async def done(self, *, hurry: bool = False) -> None:
        """Wait until nothing is left to do; in a ``hurry`` nothing waits for others."""
        if hurry:
            self._hurry.set()
        while self._work:
            await asyncio.wait(tuple(self._work))
        self._hurry.clear()
