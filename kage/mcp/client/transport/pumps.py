"""What stands between a server's pipes and the messages that are read from it and written to it.

Imports the SDK's types: import it late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from anyio import ClosedResourceError, WouldBlock
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import JSONRPCNotification

from kage.mcp.client.transport.flow import Flow
from kage.mcp.client.transport.framing import Framer, TooLong
from kage.mcp.client.transport.parse import Fatal, Stray, parse, parse_too_long
from kage.mcp.client.transport.writing import encoded
from kage.mcp.client.wire.ends import Inbox, WriteEnd

CHUNK = 1 << 18  # bytes of one read
DRAIN = 0.5  # seconds the output of a process that left may still come in
SKIP_LIMIT = 1 << 30  # bytes of one endless line after which the connection ends
_SLICE = 0.005  # seconds of work before others get their turn
_STALL_STEP = 0.25  # seconds between two looks at a write under way


@dataclass(slots=True)
class Traffic:
    """Counters of one connection."""

    bytes_in: int = 0
    bytes_out: int = 0
    messages_in: int = 0
    messages_out: int = 0
    strays: int = 0  # lines on stdout that were no protocol
    dropped: int = 0  # notifications left out or merged under pressure


class Inlet:
    """Reads stdout; ends the sink when the output ends, with ``reason`` saying why."""

    def __init__(
        self,
        source: asyncio.StreamReader,
        sink: Inbox,
        *,
        limit: int,
        on_stray: Callable[[str], None],
        traffic: Traffic,
    ) -> None:
        self._source = source
        self._sink = sink
        self._limit = limit
        self._on_stray = on_stray
        self._traffic = traffic
        self._flow = Flow()
        self._deadline: float | None = None
        self._waiting: asyncio.Timeout | None = None
        self._slice = 0.0
        self._told = False  # the line being skipped has already failed its call
        self._open = True  # somebody reads what comes
        self.reason = ""
        self.at_fault = False  # the reason is more than the end of the output

    def process_left(self) -> None:
        """Take what was written already, then end, although something holds the pipe open."""
        self._deadline = asyncio.get_running_loop().time() + DRAIN
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(self._next_deadline())

    def fail(self, reason: str) -> None:
        """End the sink now; what the server still writes is read and thrown away."""
        if not self.reason:
            self.reason, self.at_fault = reason, True
        self._end()

    def _end(self) -> None:
        self._open = False
        self._sink.close()

    async def run(self) -> None:
        """Read until the end; afterwards keep the pipe empty until cancelled or closed."""
        framer = Framer(self._limit)
        try:
            while chunk := await self._read():
                self._traffic.bytes_in += len(chunk)
                for piece in framer.feed(chunk):
                    await self._take(piece)
                if framer.pending > max(SKIP_LIMIT, 4 * self._limit):
                    self.fail("it sent a line without end")
                if not self._open:
                    break
            for piece in framer.end():
                await self._take(piece)
            await self._send_due(everything=True)
            self.reason = self.reason or "it closed its output"
            self._end()
            while await self._source.read(CHUNK):
                pass
        except OSError as error:
            self.fail(f"its output cannot be read: {error.strerror or error}")
        finally:
            self._sink.close()

    async def _read(self) -> bytes:
        loop = asyncio.get_running_loop()
        while True:
            now = loop.time()
            await self._send_due()
            if self._deadline is not None and now >= self._deadline:
                return b""
            try:
                async with asyncio.timeout_at(self._next_deadline()) as self._waiting:
                    return await self._source.read(CHUNK)
            except TimeoutError:
                continue
            finally:
                self._waiting = None
                self._slice = loop.time()

    def _next_deadline(self) -> float | None:
        times = [time for time in (self._deadline, self._flow.next) if time is not None]
        return min(times, default=None)

    async def _take(self, piece: bytes | TooLong) -> None:
        if not self._open:
            return
        if isinstance(piece, TooLong):
            await self._take_too_long(piece)
            return
        for item in parse(piece):
            if isinstance(item, Stray):
                self._stray(item)
                continue
            self._traffic.messages_in += 1
            message = item.message
            if not isinstance(message, JSONRPCNotification) or self._flow.admit(
                item, message.method, message.params, asyncio.get_running_loop().time()
            ):
                await self._send(item)
            self._traffic.dropped = self._flow.dropped
        await self._give_way()

    async def _take_too_long(self, line: TooLong) -> None:
        item = None if self._told and line.ended else parse_too_long(line, self._limit)
        self._told = item is not None and not line.ended
        match item:
            case SessionMessage():
                await self._send(item)
            case Stray():
                self._stray(item)
            case Fatal(reason):
                self.fail(reason)
            case None:
                pass

    def _stray(self, stray: Stray) -> None:
        self._traffic.strays += 1
        self._on_stray(stray.text)

    async def _send_due(self, *, everything: bool = False) -> None:
        if self._flow.next is not None:
            now = asyncio.get_running_loop().time()
            for item in self._flow.due(now, all_of_them=everything):
                await self._send(item)

    async def _send(self, item: SessionMessage) -> None:
        """Hand over one message; waits while nobody takes it, and with it the server waits."""
        await self._sink.room()
        self._open = self._open and not self._sink.closed
        if self._open:
            self._sink.put(item)

    async def _give_way(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._slice > _SLICE:
            await asyncio.sleep(0)
            self._slice = asyncio.get_running_loop().time()


class Outlet(WriteEnd):
    """Writes to stdin, one message at a time; ``stalled_since`` shows a server that won't read.

    Args:
        failed: Told why the server takes no more messages, once.
    """

    def __init__(
        self, writer: asyncio.StreamWriter, *, traffic: Traffic, failed: Callable[[str], None]
    ) -> None:
        self._writer = writer
        self._traffic = traffic
        self._failed = failed
        self._closed = False
        self._flushing: asyncio.Task[None] | None = None
        self.stalled_since: float | None = None  # loop time of the last byte that went
        # with a high-water mark of zero, drain() ends when the pipe has taken everything
        writer.transport.set_write_buffer_limits(high=0)

    def send_nowait(self, item: SessionMessage) -> None:
        """Write one message.

        Raises:
            anyio.WouldBlock: the pipe has not taken the one before yet.
            anyio.ClosedResourceError: the server takes no more.
        """
        if self._flushing is not None and not self._closed:
            raise WouldBlock
        try:
            data = encoded(item) + b"\n"
        except ValueError as error:
            self._fail(f"a message could not be written as JSON: {error}")
        else:
            if self._writer.is_closing():
                self._fail("it closed its input")
        if self._closed:
            raise ClosedResourceError
        self._writer.write(data)
        self._traffic.bytes_out += len(data)
        self._traffic.messages_out += 1
        if self._writer.transport.get_write_buffer_size():
            self._flushing = asyncio.create_task(self._flush(), name="stdin")

    async def send(self, item: SessionMessage) -> None:
        """Write one message once the pipe has taken the one before.

        Raises:
            anyio.ClosedResourceError: the server takes no more.
        """
        while (flushing := self._flushing) is not None and not self._closed:
            await asyncio.wait({flushing})
        self.send_nowait(item)

    async def aclose(self) -> None:
        """Write no more."""
        self.close()

    def close(self) -> None:
        """Write no more; what is under way goes on until the pipe is closed."""
        self._closed = True

    async def end(self) -> None:
        """Give up what is under way."""
        if (flushing := self._flushing) is not None:
            flushing.cancel()
            await asyncio.wait({flushing})

    def _fail(self, why: str) -> None:
        if not self._closed:
            self._closed = True
            self._failed(why)

    async def _flush(self) -> None:
        transport = self._writer.transport
        left = transport.get_write_buffer_size()
        loop = asyncio.get_running_loop()
        drain = asyncio.ensure_future(self._writer.drain())
        drain.add_done_callback(lambda task: task.cancelled() or task.exception())
        self.stalled_since = loop.time()
        try:
            while not drain.done():
                await asyncio.wait({drain}, timeout=_STALL_STEP)
                size = transport.get_write_buffer_size()
                if size < left:
                    left, self.stalled_since = size, loop.time()
            drain.result()
        except OSError:
            self._fail("it closed its input")
        finally:
            self.stalled_since = None
            self._flushing = None
            drain.cancel()
