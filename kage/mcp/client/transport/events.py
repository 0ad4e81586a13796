"""Reads the one stream of events an older HTTP server answers over, below the SDK.

The SDK gets the endpoint to post to and nothing else: its own reader ends the connection at an
event of 1 MiB and waits for ever for an endpoint that is not named. Messages go to the tap the
same way as those of a process do. Imports httpx2 and the SDK: import it late.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from urllib.parse import urljoin, urlsplit

import httpx2
from mcp.shared.message import SessionMessage

from kage.mcp.client.transport.body import Unusable
from kage.mcp.client.transport.framing import EDGE, TooLong
from kage.mcp.client.transport.parse import (
    ANSWER_TOO_LONG,
    Stray,
    answer_error,
    parse,
    parse_too_long,
    read_envelope,
)
from kage.mcp.client.transport.sse import Event, EventReader

_MAX_ENDPOINT = 8_192  # bytes of the endpoint's address


class OldStream(httpx2.AsyncByteStream):
    """The body of the stream, as the SDK sees it.

    Args:
        url: Where the stream was opened; the endpoint has to be of the same origin.
        most: The longest message in bytes.
        take: Hands a message to the tap; waits while nobody takes it.
        stray: Told of each event that is no message.
        failed: Told why the stream cannot be used.
    """

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        *,
        url: str,
        most: int,
        take: Callable[[SessionMessage], Awaitable[None]],
        stray: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        self._inner = inner
        self._url = url
        self._most = most
        self._take = take
        self._stray = stray
        self._failed = failed
        self._named = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Give the endpoint's event, then read to the end.

        Raises:
            Unusable: there is no endpoint, or it is another server's.
        """
        reader = EventReader(self._most)
        async for chunk in self._inner:
            for piece in reader.feed(chunk):
                if isinstance(piece, TooLong):
                    await self._too_long(piece)
                elif piece.name == b"endpoint":
                    yield self._endpoint(b"".join(piece.data)[:_MAX_ENDPOINT])
                elif piece.is_message:
                    await self._message(piece)
        if not self._named:
            raise self._fail("its stream of events ended before it named an endpoint to post to")

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._inner.aclose()

    async def _message(self, event: Event) -> None:
        data = b" ".join(event.data)
        if event.size > self._most:
            for lost in self._lost(data[:EDGE]):
                await self._take(lost)
            return
        for item in parse(data):
            if isinstance(item, Stray):
                self._stray()
            else:
                await self._take(item)

    async def _too_long(self, piece: TooLong) -> None:
        """Fail the call a line over the limit answers, as soon as that can be told."""
        item = parse_too_long(piece, self._most)
        if isinstance(item, SessionMessage):
            await self._take(item)
        elif item is not None:
            self._stray()

    def _lost(self, head: bytes) -> Iterator[SessionMessage]:
        envelope = read_envelope(head)
        if envelope.id is not None and not envelope.request:
            text = f"The server's answer is longer than {self._most} bytes (max_message_bytes)"
            yield answer_error(envelope.id, text, ANSWER_TOO_LONG)
        else:
            self._stray()

    def _endpoint(self, data: bytes) -> bytes:
        try:
            text = data.decode()
            target, here = urlsplit(urljoin(self._url, text)), urlsplit(self._url)
            same = (target.scheme, target.netloc) == (here.scheme, here.netloc)
        except ValueError:
            same = False
        if not same:
            raise self._fail("it names an endpoint at another origin, where kage sends nothing")
        if self._named:
            return b": again\n\n"
        self._named = True
        return b"event: endpoint\ndata: " + data + b"\n\n"

    def _fail(self, why: str) -> Unusable:
        self._failed(why)
        return Unusable(why)
