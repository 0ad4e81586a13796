"""The ends of message streams: what the SDK and the tap read from and write to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

    Item = SessionMessage | Exception  # an exception: something that could not be read

MAX_WAITING = 64  # messages the SDK has not taken yet, before no more are read


class Inbox:
    """Messages on their way to a reader; one that is full holds back whoever fills it."""

    def __init__(self, most: int = MAX_WAITING) -> None:
        self._most = most
        self._queue: asyncio.Queue[Item | None] = asyncio.Queue()
        self._room = asyncio.Event()
        self._room.set()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether nothing more can be put in."""
        return self._closed

    def put(self, item: Item) -> None:
        """Add a message, also to a full one; after :meth:`close` it goes nowhere."""
        if not self._closed:
            self._queue.put_nowait(item)
            if self._queue.qsize() >= self._most:
                self._room.clear()

    async def room(self) -> None:
        """Wait until there is room for another message."""
        await self._room.wait()

    async def get(self) -> Item | None:
        """Give the next message, None at the end."""
        item = await self._queue.get()
        if self._queue.qsize() < self._most:
            self._room.set()
        return item

    def close(self) -> None:
        """End it behind what it holds."""
        if not self._closed:
            self._closed = True
            self._queue.put_nowait(None)
            self._room.set()


class Reader:
    """The end for reading, as the SDK expects one."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._done = False

    async def receive(self) -> Item:
        """Give the next message.

        Raises:
            anyio.EndOfStream: the connection is over.
        """
        from anyio import EndOfStream

        item = None if self._done else await self._inbox.get()
        if item is None:
            self._done = True
            raise EndOfStream
        return item

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> Item:
        item = None if self._done else await self._inbox.get()
        if item is None:
            self._done = True
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        """Read no more."""
        self._done = True
        self._inbox.close()

    async def __aenter__(self) -> Reader:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class WriteEnd:
    """What every end for writing has, as the SDK expects it."""

    async def aclose(self) -> None:
        """Write no more."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class Writer(WriteEnd):
    """The end of the tap the SDK writes to; closing it is the transport's business."""

    def __init__(self, send: Callable[[SessionMessage], Awaitable[None]]) -> None:
        self.send = send
