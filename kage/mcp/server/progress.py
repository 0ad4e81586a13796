"""Progress of one call on its way to the client: rising, not too often, never after the answer.

A tool that counts its steps says how far it is. Of any other the client hears the seconds it has
run, with its latest line of output, and now and then even in silence: many clients give up on a
call they hear nothing of.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kage.core.sanitise import visible
from kage.mcp.server import rpc

GAP = 0.05  # seconds between two notifications
BEAT = 5.0  # seconds of silence until one is sent all the same
_SHOWN = 500  # characters of a message


def no_progress(progress: float, total: float | None, message: str) -> None:
    """Take progress nobody asked for."""


def no_output(text: str) -> None:
    """Take output nobody watches."""


class Progress:
    """Sends a call's progress under the client's token; may be called from any thread."""

    def __init__(
        self,
        token: str | int,
        send: Callable[[bytes], None],
        loop: asyncio.AbstractEventLoop,
        room: asyncio.Event,
        *,
        texts: bool,
    ) -> None:
        self._token = token
        self._send = send
        self._loop = loop
        self._room = room  # cleared while the client does not take what is sent
        self._texts = texts  # the revision has messages
        self._thread = threading.get_ident()
        self._last = -math.inf
        self._next = 0.0  # monotonic seconds
        self._closed = False
        self._counted = False  # the tool itself says how far it is
        self._began = time.monotonic()
        self._timer = loop.call_later(BEAT, self._beat)

    def __call__(self, progress: float, total: float | None, message: str) -> None:
        """Report; values that do not rise are left out."""
        if threading.get_ident() != self._thread:
            with suppress(RuntimeError):  # the loop is closed: nobody waits for progress
                self._loop.call_soon_threadsafe(self, progress, total, message)
            return
        self._counted = True
        self._report(progress, total, message)

    def output(self, text: str) -> None:
        """Take the next part of what the tool prints; called on the loop."""
        if self._counted:
            return
        lines = text[-4 * _SHOWN :].split("\n")
        self._tick(next((line for line in reversed(lines) if line.strip()), ""))

    def close(self) -> None:
        """The call has ended."""
        self._closed = True
        self._timer.cancel()

    def _beat(self) -> None:
        self._timer = self._loop.call_later(BEAT, self._beat)
        if not self._counted:
            self._tick("")

    def _tick(self, line: str) -> None:
        seconds = round(time.monotonic() - self._began, 2)
        shown = visible(line, single_line=True) or f"running for {seconds:.0f} s"
        self._report(seconds, None, shown)

    def _report(self, progress: float, total: float | None, message: str) -> None:
        now = time.monotonic()
        finite = math.isfinite(progress) and (total is None or math.isfinite(total))
        if self._closed or not finite or progress <= self._last or now < self._next:
            return
        if not self._room.is_set():
            return
        self._last = progress
        self._next = now + GAP
        params: dict[str, Any] = {"progressToken": self._token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message and self._texts:
            params["message"] = message[:_SHOWN]
        self._send(rpc.notification("notifications/progress", params))
