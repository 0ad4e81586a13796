"""The wire to the engine: starts it after the first frame, passes commands in and events out."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from kage.core.commands import Command, SubmitPrompt

if TYPE_CHECKING:
    from kage.agent.host import Host
    from kage.core.events import Event

CLOSING = 8.0  # seconds; the host promises 6


class HostLink:
    """Owns the host from its making to its end.

    Args:
        make: Makes the host; called after the first frame.
        prepare: Imports what ``make`` needs, on a thread: typing is answered meanwhile.
        deliver: Gets events in batches, on the app's own message queue.
        later: Runs something on that queue.
        guard: Reports what goes wrong inside it, given what was being done.
    """

    def __init__(
        self,
        make: Callable[[], Host],
        *,
        deliver: Callable[[list[Event]], None],
        later: Callable[[Callable[[], None]], object],
        guard: Callable[[str], AbstractContextManager[None]],
        prepare: Callable[[], object] | None = None,
    ) -> None:
        self._make = make
        self._prepare = prepare
        self._deliver = deliver
        self._later = later
        self._guard = guard
        self._host: Host | None = None
        self._ready = False
        self._early: list[Command] = []
        self._pending: deque[Event] = deque()
        self._scheduled = False
        self._unsubscribe: Callable[[], None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def host(self) -> Host | None:
        """The host, once it is up."""
        return self._host if self._ready else None

    @property
    def early_prompts(self) -> int:
        """Prompts that wait for the host to be up."""
        return sum(isinstance(command, SubmitPrompt) for command in self._early)

    async def start(self) -> bool:
        """Make and start the host, then send what was asked for meanwhile; False: it failed."""
        with self._guard("starting"):
            if self._prepare is not None:
                await asyncio.to_thread(self._prepare)
            self._host = self._make()
            self._unsubscribe = self._host.subscribe(self._heard)
            await self._host.start()
            self._ready = True
            early, self._early = self._early, []
            for command in early:
                self.send(command)
        return self._ready

    def send(self, command: Command) -> None:
        """Hand a command over, now or as soon as the host is up."""
        if self._host is None or not self._ready:
            self._early.append(command)
            return
        with self._guard("passing that on"):
            self._host.send(command)

    def recall_early(self) -> list[Command]:
        """Take back what was never sent."""
        early, self._early = self._early, []
        return early

    async def close(self) -> None:
        """End the host, once; whoever asks again waits for the same end.

        Cancelling the caller does not stop it: servers are ended in any case.
        """
        if self._host is None:
            return
        if self._closing is None:
            self._closing = asyncio.create_task(self._end(self._host))
        await asyncio.shield(self._closing)

    async def _end(self, host: Host) -> None:
        with self._guard("closing"), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSING):
                await host.close()

    def detach(self) -> None:
        """Stop listening."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _heard(self, event: Event) -> None:
        self._pending.append(event)
        if not self._scheduled:
            self._scheduled = True
            self._later(self._drain)

    def _drain(self) -> None:
        self._scheduled = False
        events = list(self._pending)
        self._pending.clear()
        self._deliver(events)
