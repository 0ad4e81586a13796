"""Own the engine's background tasks and tell what goes wrong in them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from kage.core.errors import KageError
from kage.core.events import Noticed, Publish
from kage.core.levels import Level


def own_mistake(error: Exception) -> str:
    """Say that kage itself failed, in words for a person."""
    return f"kage made a mistake of its own ({type(error).__name__}: {error})"


class Supervisor:
    """Keeps a reference to every task until it ends."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` in the background; an error becomes a notice."""
        task = asyncio.create_task(self._report(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def complain(self, error: KageError) -> None:
        """Tell the person about ``error``."""
        self._publish(Noticed(level=Level.ERROR, what=error.what, why=error.why, fix=error.fix))

    async def stop(self) -> None:
        """Cancel what still runs and wait for it."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _report(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except KageError as error:
            self.complain(error)
        except Exception as error:  # a mistake of kage's own is told, not lost in a task
            self._publish(Noticed(level=Level.ERROR, what=own_mistake(error)))
