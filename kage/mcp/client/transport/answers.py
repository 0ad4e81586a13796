"""The stream of events a request is answered over, made fit for the SDK.

The SDK takes any answer on such a stream for the one it waits for, whatever its id, and ends the
connection over a waiting time that is no number of seconds. Imports httpx2 and the SDK: import it
late.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator

import httpx2
from pydantic_core import from_json

from kage.mcp.client.transport.framing import EDGE, TooLong
from kage.mcp.client.transport.parse import (
    ANSWER_TOO_LONG,
    INVALID_ANSWER,
    answer_error,
    read_envelope,
)
from kage.mcp.client.transport.sse import Event, EventReader

_ODD_ID = "it answered with an id of another type"


class AnswerStream(httpx2.AsyncByteStream):
    """The body of such a stream, as the SDK sees it.

    Args:
        request: The id of the request that is answered over it; None: it is nobody's.
        most: The longest message in bytes.
        stray: Told of each message that answers something else.
    """

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        *,
        request: int | str | None,
        most: int,
        stray: Callable[[], None],
    ) -> None:
        self._inner = inner
        self._request = request
        self._most = most
        self._stray = stray

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Give the events, one field to a line."""
        async for event in self.events():
            for part in _written(event):  # joined they would be one more copy of a large answer
                yield part

    async def events(self) -> AsyncGenerator[Event]:
        """Give the events; one that carries nothing the request waits for has no data."""
        reader = EventReader(self._most)
        async for chunk in self._inner:
            for piece in reader.feed(chunk):
                if isinstance(piece, TooLong):
                    if lines := self._too_long(piece):
                        yield Event(data=lines)
                else:
                    piece.data = self._message(piece) if piece.is_message else []
                    yield piece

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._inner.aclose()

    def _message(self, event: Event) -> list[bytes]:
        """Give the lines of a message, none when it is not for the SDK."""
        data = event.data[0] if len(event.data) == 1 else b"\n".join(event.data)
        if event.size > self._most:
            return self._lost(read_envelope(data[:EDGE]).id)
        found = self._answered(data)
        if self._request is None or found is None or _same(found, self._request):
            return event.data
        if str(found) == str(self._request):
            return [_error(self._request, _ODD_ID, INVALID_ANSWER)]
        self._stray()
        return []

    def _answered(self, data: bytes) -> int | str | None:
        """Give the id of an answer; None for what is none, or names no request."""
        envelope = read_envelope(data[:EDGE], data[-EDGE:])
        if envelope.request or envelope.id is not None or len(data) <= EDGE:
            return None if envelope.request else envelope.id
        try:
            value = from_json(data)
        except ValueError:
            return None
        found = value.get("id") if isinstance(value, dict) and "method" not in value else None
        return found if isinstance(found, int | str) else None

    def _too_long(self, piece: TooLong) -> list[bytes]:
        """Fail the request a line over the limit answers, as soon as the limit is crossed."""
        envelope = read_envelope(piece.head)
        if piece.ended or envelope.request:  # told before, or a message that is no answer
            self._stray()
            return []
        return self._lost(envelope.id if envelope.id is not None else self._request)

    def _lost(self, found: int | str | None) -> list[bytes]:
        """Give the error that stands for a message that was too long to be kept."""
        wanted = found if self._request is None else self._request
        if wanted is None or found is None or not _same(found, wanted):
            self._stray()
            return []
        text = f"The server's answer is longer than {self._most} bytes (max_message_bytes)"
        return [_error(wanted, text, ANSWER_TOO_LONG)]


def _written(event: Event) -> Iterator[bytes]:
    if event.id is not None:
        yield b"id: " + event.id + b"\n"
    if event.retry is not None:
        yield b"retry: %d\n" % event.retry
    for line in event.data:
        yield from (b"data: ", line, b"\n")
    yield b"\n"


def _same(one: object, other: object) -> bool:
    return one == other and type(one) is type(other)


def _error(request: int | str, text: str, code: int) -> bytes:
    message = answer_error(request, text, code).message
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
