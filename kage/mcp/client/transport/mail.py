"""The stream ends between the tap and the SDK's HTTP transports.

Imports the SDK's types: import it late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR
from mcp_types.jsonrpc import JSONRPCError, JSONRPCNotification

from kage.mcp.client.transport.base import ANSWER_LOST
from kage.mcp.client.transport.errand import MAIL
from kage.mcp.client.transport.flow import Flow
from kage.mcp.client.transport.parse import ANSWER_TOO_LONG, INVALID_ANSWER, answer_error
from kage.mcp.client.transport.posts import Posts
from kage.mcp.client.wire.ends import Inbox, Reader

_OWN_WORDS = (  # errors the SDK's transport makes up, and what they mean
    (PARSE_ERROR, "Failed to parse", INVALID_ANSWER, "it is no valid JSON-RPC message"),
    (
        CONNECTION_CLOSED,
        "SSE stream failed: Server-sent event exceeded",
        ANSWER_TOO_LONG,
        "it is longer than max_message_bytes allows",
    ),
    (CONNECTION_CLOSED, "SSE stream failed", ANSWER_LOST, "its stream of events was broken"),
    (CONNECTION_CLOSED, "SSE stream ended", ANSWER_LOST, "its answer broke off before its end"),
    (INVALID_REQUEST, "Unexpected content type", ANSWER_LOST, "it answered with something else"),
)


class Arrivals:
    """Passes on what the SDK's transport read, thins floods, and takes answers made here."""

    def __init__(self, read: Any) -> None:  # the SDK's ReadStream
        self._read = read
        self._inbox = Inbox()
        self._flow = Flow()
        self._tasks: set[asyncio.Task[None]] = set()
        self.strays = 0

    def start(self) -> Reader:
        """Begin; gives the end to read from."""
        self._spawn(self._run())
        return Reader(self._inbox)

    def inject(self, item: SessionMessage) -> None:
        """Add a message of kage's own."""
        self._inbox.put(item)

    async def take(self, item: SessionMessage) -> None:
        """Pass on a message, or not, when there are too many of its kind."""
        if not self._admits(item):
            return
        if self._flow.next is not None and not isinstance(item.message, JSONRPCNotification):
            await self._send_due()  # the last progress of a call comes before its answer
        await self._send(_mended(item))

    async def close(self) -> None:
        """End both sides."""
        self._inbox.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(self) -> None:
        try:
            async for item in self._read:
                if isinstance(item, Exception):
                    self.strays += 1
                    await self._send(item)
                else:
                    await self.take(item)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        finally:
            self._inbox.close()

    def _admits(self, item: SessionMessage) -> bool:
        message = item.message
        if not isinstance(message, JSONRPCNotification):
            return True
        loop = asyncio.get_running_loop()
        held = self._flow.next is not None
        admitted = self._flow.admit(item, message.method, message.params, loop.time())
        if not held and self._flow.next is not None:
            loop.call_at(self._flow.next, lambda: self._spawn(self._send_due()))
        return admitted

    async def _send_due(self) -> None:
        now = asyncio.get_running_loop().time()
        for item in self._flow.due(now, all_of_them=True):
            await self._send(item)

    async def _send(self, item: SessionMessage | Exception) -> None:
        await self._inbox.room()
        self._inbox.put(item)

    def _spawn(self, work: Any) -> None:  # a coroutine without a result
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Departures:
    """Hands messages to the SDK's transport with a note the client below can read.

    ``marks``: what of a request was really written is noted where it is written.

    Args:
        posts: Takes what goes past the SDK's transport; None: nothing does.
    """

    marks = True

    def __init__(
        self,
        write: Any,  # the SDK's WriteStream
        departs: Callable[[SessionMessage], SessionMessage],
        posts: Posts | None,
    ) -> None:
        self._write = write
        self._departs = departs
        self._posts = posts

    @property
    def posting(self) -> bool:
        """Whether calls need nothing of the SDK."""
        return self._posts is not None and self._posts.ready

    async def send(self, item: SessionMessage) -> None:
        """Send one message.

        Raises:
            anyio.ClosedResourceError: the transport is gone, or
            anyio.BrokenResourceError: it is going.
        """
        item = self._departs(item)
        mark = MAIL.set(item.message)
        try:
            if self._posts is None or not self._posts.take(item):
                await self._write.send(item)
        finally:
            MAIL.reset(mark)


def _mended(item: SessionMessage) -> SessionMessage:
    """Put what the SDK's transport says about a lost answer into kage's words."""
    message = item.message
    if isinstance(message, JSONRPCError) and message.id is not None:
        for code, begin, better, words in _OWN_WORDS:
            if message.error.code == code and message.error.message.startswith(begin):
                return answer_error(message.id, words, better)
    return item
