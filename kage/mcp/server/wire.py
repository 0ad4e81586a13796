"""Lines in, lines out: the two file descriptors ``kage mcp serve`` speaks through.

One asyncio loop, no thread. Replies of one round of the loop leave in one system call, a large one
is never copied. A peer that stops reading stops being read from; a peer that is gone ends serving.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections import deque
from collections.abc import Callable

MAX_LINE = 32 << 20  # bytes of one message
HIGH_WATER = 8 << 20  # unsent bytes at which reading pauses
_READ = 1 << 18
_MOST_BUFFERS = 64  # of one writev
_ID = re.compile(
    rb'\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*"id"\s*:\s*'
    rb'(-?[0-9]{1,18}|"[^"\\]{0,256}")\s*[,}]'
)

Line = bytes | bytearray


def early_id(start: bytes | bytearray) -> bytes:
    """Give the id of a request as it is written near its ``start``, b"" when it is not there."""
    found = _ID.match(start)
    return bytes(found[1]) if found else b""


class Wire:
    """The connection; calls back for each line, for an over-long one, and at the end."""

    def __init__(
        self,
        source: int,
        sink: int,
        *,
        on_end: Callable[[], None],
        max_line: int = MAX_LINE,
    ) -> None:
        self._source = source
        self._sink = sink
        self._on_lines: Callable[[list[Line]], None] = _nobody
        self._on_too_long: Callable[[bytes], None] = _nobody
        self._on_end = on_end
        self._max_line = max_line
        self._loop = asyncio.get_running_loop()
        self._input = bytearray()
        self._skipping = False  # inside a line that was too long
        self._output: deque[memoryview] = deque()
        self._unsent = 0
        self._flushing = False  # a flush is due in this round
        self._alone = False  # the last read held one message: its answer need not wait for others
        self._waiting = False  # for the sink to take more
        self._reading = False
        self._polled = True  # whether the loop can watch the source
        self._ended = False
        self.broken = False  # the peer stopped taking what is sent
        self._sent = asyncio.Event()
        self._sent.set()
        self.room = asyncio.Event()  # the peer takes what is sent: more may be made
        self.room.set()
        self._restore = _no_restore

    def start(
        self,
        *,
        on_lines: Callable[[list[Line]], None],
        on_too_long: Callable[[bytes], None],
    ) -> None:
        """Begin to read; from now on writing never blocks the loop on a pipe or socket.

        ``on_lines`` takes the lines that came together, ``on_too_long`` the start of one that was
        thrown away.
        """
        self._on_lines = on_lines
        self._on_too_long = on_too_long
        self._sink, self._restore = _unblocked(self._sink)
        self._resume()

    def send(self, line: bytes) -> None:
        """Queue one message, which ends in a newline."""
        if self.broken:
            return
        self._output.append(memoryview(line))
        self._unsent += len(line)
        self._sent.clear()
        if self._alone and not self._flushing and not self._waiting:
            self._flush()
        elif not self._flushing and not self._waiting:
            self._flushing = True
            self._loop.call_soon(self._flush)
        if self._unsent > HIGH_WATER:
            self.room.clear()
            self._pause()

    async def drain(self, limit: float) -> None:
        """Wait until everything is sent, at most ``limit`` seconds."""
        try:
            async with asyncio.timeout(limit):
                await self._sent.wait()
        except TimeoutError:
            self.broken = True

    def close(self) -> None:
        """Stop reading and writing; the descriptors stay open."""
        self._ended = True
        self._pause()
        if self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._sink)
        self._restore()
        self._restore = _no_restore

    def stop_reading(self) -> None:
        """Take no more messages."""
        self._ended = True
        self._pause()

    def _resume(self) -> None:
        if self._reading or self._ended:
            return
        self._reading = True
        if self._polled:
            try:
                self._loop.add_reader(self._source, self._readable)
                return
            except (PermissionError, ValueError):  # a regular file is always ready
                self._polled = False
            except OSError:
                self._finish()
                return
        self._loop.call_soon(self._read_file)

    def _pause(self) -> None:
        if self._reading:
            self._reading = False
            if self._polled:
                self._loop.remove_reader(self._source)

    def _read_file(self) -> None:
        if self._reading:
            self._readable()
        if self._reading:
            self._loop.call_soon(self._read_file)

    def _readable(self) -> None:
        try:
            chunk = os.read(self._source, _READ)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # a terminal that is gone reads as an error
            chunk = b""
        if chunk:
            self._feed(chunk)
        else:
            self._finish()

    def _finish(self) -> None:
        self.stop_reading()
        rest = bytes(self._input)
        self._input.clear()
        if rest.strip() and not self._skipping:
            self._on_lines([rest])
        self._on_end()

    def _feed(self, chunk: bytes) -> None:
        end = chunk.rfind(b"\n")
        if end < 0:
            self._keep(chunk)
            return
        if self._skipping:
            first = chunk.find(b"\n")
            self._skipping = False
            chunk, end = chunk[first + 1 :], end - first - 1
            if end < 0:
                self._keep(chunk)
                return
        if self._input:
            # only the last chunk can hold line ends: a large message is not copied to find them
            first = chunk.find(b"\n")
            self._input += chunk[:first]
            lines: list[Line] = [self._input]
            self._input = bytearray()
            if first < end:
                lines += chunk[first + 1 : end].split(b"\n")
        else:
            lines = [*chunk[:end].split(b"\n")]
        if end + 1 < len(chunk):
            self._input += chunk[end + 1 :]
        self._alone = len(lines) == 1
        self._on_lines(lines)

    def _keep(self, chunk: bytes) -> None:
        if self._skipping:
            return
        self._input += chunk
        if len(self._input) > self._max_line:
            start = bytes(self._input[:4096])
            self._input = bytearray()
            self._skipping = True
            self._on_too_long(start)

    def _flush(self) -> None:
        self._flushing = False
        while self._output and not self.broken:
            batch = [self._output[index] for index in range(min(len(self._output), _MOST_BUFFERS))]
            try:
                count = os.writev(self._sink, batch)
            except (BlockingIOError, InterruptedError):
                self._wait_for_sink()
                return
            except OSError:
                self._break()
                return
            self._taken(count)
        if self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._sink)
        self._sent.set()

    def _taken(self, count: int) -> None:
        self._unsent -= count
        while count:
            first = self._output[0]
            if len(first) <= count:
                count -= len(first)
                self._output.popleft()
            else:
                self._output[0] = first[count:]
                count = 0
        if self._unsent < HIGH_WATER // 2:
            self.room.set()
            if not self._reading and not self._ended:
                self._resume()

    def _wait_for_sink(self) -> None:
        if not self._waiting:
            self._waiting = True
            self._loop.add_writer(self._sink, self._flush)

    def _break(self) -> None:
        """The peer reads no more: nothing that is sent can arrive."""
        self.broken = True
        self._output.clear()
        self._unsent = 0
        if self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._sink)
        self._sent.set()
        self.room.set()
        ended = self._ended
        self.stop_reading()
        if not ended:
            self._on_end()


def _no_restore() -> None:
    pass


def _nobody(_: object) -> None:
    pass


def _unblocked(sink: int) -> tuple[int, Callable[[], None]]:
    """Give a descriptor for ``sink`` that does not block, and what undoes it at the end.

    A pipe is opened again where the system can, so that nobody who shares it is surprised; files
    and terminals stay as they are, since they take everything at once.
    """
    kind = os.fstat(sink).st_mode
    if stat.S_ISFIFO(kind):
        try:
            opened = os.open(f"/proc/self/fd/{sink}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            pass
        else:
            return opened, lambda: os.close(opened)
    if (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)) and os.get_blocking(sink):
        os.set_blocking(sink, False)
        return sink, lambda: os.set_blocking(sink, True)
    return sink, _no_restore
