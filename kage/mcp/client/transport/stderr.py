"""Drains a server's stderr at full speed, so that the server never waits for kage."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from kage.mcp.client.transport.flow import Bucket

CHUNK = 1 << 18  # bytes of one read
MAX_LINE = 8192  # bytes of a line that are kept
KEEP = 200  # last lines kept of a flood
_IDLE = 0.2  # seconds of silence after which the last lines of a flood are told
_PROMPT = 1.0  # seconds of silence after which a line without its newline is told
_SLICE = 0.005  # seconds of work before others get their turn


class Drain:
    """Reads until the pipe ends and hands over whole lines, not yet sanitised.

    Up to 20 000 lines at once and 2 000 a second are handed over; of a greater flood the last
    lines, with a note that says how many were left out.
    """

    def __init__(self, source: asyncio.StreamReader, emit: Callable[[str], None]) -> None:
        self._source = source
        self._emit = emit
        self._bucket = Bucket(burst=20_000, rate=2_000)
        self._partial = b""  # the unfinished line, at most MAX_LINE bytes
        self._cut = 0  # bytes of it that were left out
        self._held: deque[bytes] = deque(maxlen=KEEP)
        self._skipped = 0
        self._held_since = 0.0

    async def run(self) -> None:
        """Drain until the other end is closed."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    async with asyncio.timeout(self._patience()):
                        chunk = await self._source.read(CHUNK)
                except TimeoutError:
                    told = bool(self._held)
                    self._tell_held()
                    if not told:
                        self._tell_partial()
                    continue
                if not chunk:
                    break
                await self._take(chunk, loop)
        finally:
            self._tell_held()
            self._tell_partial()

    def _patience(self) -> float | None:
        if self._held:
            return _IDLE
        return _PROMPT if self._partial and not self._cut else None

    async def _take(self, chunk: bytes, loop: asyncio.AbstractEventLoop) -> None:
        if self._cut:
            end = chunk.find(b"\n")
            self._cut += len(chunk) if end < 0 else end
            if end < 0:
                return
            self._tell_partial()
            chunk = chunk[end + 1 :]
        data = self._partial + chunk
        now = loop.time()
        if self._bucket.take(now, data.count(b"\n")):
            self._tell_held()
            *lines, self._partial = data.split(b"\n")
            start = now
            for line in lines:
                self._tell(line)
                if loop.time() - start > _SLICE:
                    await asyncio.sleep(0)
                    start = loop.time()
        else:
            self._hold(data, now)
            await asyncio.sleep(0)
        if len(self._partial) > MAX_LINE:
            self._cut = len(self._partial) - MAX_LINE
            self._partial = self._partial[:MAX_LINE]

    def _hold(self, data: bytes, now: float) -> None:
        """Keep the last lines only; nothing is decoded."""
        *lines, self._partial = data.rsplit(b"\n", KEEP + 1)
        if not self._held:
            self._held_since = now
        before = len(self._held) + data.count(b"\n")
        self._held.extend(line[: MAX_LINE + 1] for line in lines[-KEEP:])
        self._skipped += before - len(self._held)
        if now - self._held_since > 1.0:  # a flood without end is told once a second
            self._tell_held()

    def _tell_held(self) -> None:
        if self._skipped:
            self._emit(f"[{self._skipped} lines left out]")
        self._skipped = 0
        while self._held:
            self._tell(self._held.popleft())

    def _tell_partial(self) -> None:
        if self._partial:
            self._tell(self._partial, self._cut)
        self._partial, self._cut = b"", 0

    def _tell(self, line: bytes, cut: int = 0) -> None:
        cut += max(0, len(line) - MAX_LINE)
        text = line[:MAX_LINE].decode("utf-8", "replace").rstrip("\r")
        self._emit(f"{text} [{cut} bytes left out]" if cut else text)
