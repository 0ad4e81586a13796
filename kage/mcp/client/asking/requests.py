"""Requests a server sends to kage: how many may wait, and which have no answer.

``answering`` answers those that need a person, a model or a list of folders; the SDK answers
``ping`` and refuses the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

MAX_OPEN = 32  # requests of one server waiting for kage's answer
MAX_REFUSED = 4_096  # beyond those, waiting to be told so; a server that sends more hears nothing
WRITE_WAIT = 5.0  # seconds for an answer to a server that does not read
BUSY = -32000  # JSON-RPC code: too many at once
REJECTED = -1  # JSON-RPC code: the person said no to sampling
UNSUPPORTED = -32601
INVALID = -32602


class Unanswerable(Exception):
    """There is no answer; ``code`` is what a server of the handshake era is told."""

    def __init__(self, text: str, *, code: int = UNSUPPORTED) -> None:
        super().__init__(text)
        self.code = code


Wire = int | str
Reply = Callable[[Wire, Mapping[str, Any] | None, tuple[int, str] | None], Awaitable[None]]


class Refusals:
    """Tells a server which of its requests were too many, one after the other.

    Args:
        reply: Writes an error (code, text) for a request.
    """

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._waiting: deque[Wire] = deque()
        self._task: asyncio.Task[None] | None = None

    def add(self, request: Wire) -> bool:
        """Have a request refused; False when even that is too much."""
        if len(self._waiting) >= MAX_REFUSED:
            return False
        self._waiting.append(request)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write(), name="refuse requests")
        return True

    def end(self) -> None:
        """Tell no more."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()

    async def _write(self) -> None:
        from anyio import BrokenResourceError, ClosedResourceError

        error = (BUSY, f"Not answered: more than {MAX_OPEN} requests were open at once")
        with contextlib.suppress(TimeoutError, ClosedResourceError, BrokenResourceError):
            while self._waiting:
                async with asyncio.timeout(WRITE_WAIT):
                    await self._reply(self._waiting.popleft(), None, error)
        self._waiting.clear()  # it does not read, or is gone


class ServerRequests:
    """Counts the open requests of one server and turns away what is too much."""

    def __init__(self) -> None:
        self._open: set[int | str] = set()
        self.refused = 0

    def admit(self, request: Wire) -> bool:
        """Say whether a new request may be passed on; a double of an open one may not."""
        if request in self._open or len(self._open) >= MAX_OPEN:
            self.refused += 1
            return False
        self._open.add(request)
        return True

    def is_open(self, request: object) -> bool:
        """Say whether a request waits for its answer."""
        return isinstance(request, int | str) and request in self._open

    def settle(self, request: Wire) -> None:
        """Take note that the answer was written, or that there will be none."""
        self._open.discard(request)
