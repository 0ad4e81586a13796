"""The body of a response: decoded here, capped by its decoded size, and with an end in sight.

Imports httpx2: import it late.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import httpx2

from kage.mcp.client.transport.errand import Term
from kage.mcp.client.transport.parse import ANSWER_TOO_LONG

ENCODINGS = "gzip, deflate"  # what kage says it takes
_PIECE = 1 << 18  # bytes decoded at once
_AUTO = 47  # zlib's word for: a gzip or zlib header tells
_RAW = -15
_HEADER = 2  # bytes of a zlib header


class Unusable(Exception):
    """A body that cannot be used; the text says why.

    ``code``: what its call is told, 0 for what goes for any answer that got lost.
    """

    def __init__(self, text: str, *, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class Body(httpx2.AsyncByteStream):
    """Wraps what the network gives.

    Args:
        most: Decoded bytes it may have; None: any number, as a stream of events has.
    """

    def __init__(
        self, inner: httpx2.AsyncByteStream, *, encoding: str, most: int | None, term: Term
    ) -> None:
        self._inner = inner
        self._decoder = _Decoder(encoding)
        self._most = most
        self._term = term

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Give decoded pieces.

        Raises:
            Unusable: it is too long, broken or in an encoding nobody asked for.
            TimeoutError: it took too long.
        """
        size = 0
        source = self._inner.__aiter__()
        while True:
            try:
                async with self._term.running():
                    chunk = await source.__anext__()
            except StopAsyncIteration:
                break
            for piece in self._decoder.feed(chunk):
                size += len(piece)
                if self._most is not None and size > self._most:
                    text = f"it is longer than {_size(self._most)} (max_message_bytes)"
                    raise Unusable(text, code=ANSWER_TOO_LONG)
                yield piece
        self._decoder.end()

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._inner.aclose()


async def read_some(response: httpx2.Response, most: int) -> bytes:
    """Read the first ``most`` bytes of a body and close it; what cannot be read is left out."""
    found = bytearray()
    try:
        async with aclosing(response.aiter_raw()) as pieces:
            async for piece in pieces:
                found += piece
                if len(found) >= most:
                    break
    except (Unusable, TimeoutError, httpx2.HTTPError, httpx2.StreamError):
        pass
    await response.aclose()
    return bytes(found[:most])


class _Decoder:
    """Undoes a content encoding without ever holding more than a piece of the result."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding.strip().lower()
        self._plain = self._encoding in ("", "identity")
        self._work = zlib.decompressobj(_AUTO)
        self._head = b""  # its first bytes, while they may not be a header
        self._taken = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        if self._plain:
            yield chunk
            return
        if self._encoding not in ("gzip", "x-gzip", "deflate"):
            raise Unusable(f"its answer is encoded as {self._encoding[:40]!r}, unasked")
        while chunk:
            if self._work.eof:  # another member follows
                self._work = zlib.decompressobj(_AUTO)
            piece = self._decode(chunk)
            chunk = self._work.unused_data if self._work.eof else self._work.unconsumed_tail
            if piece:
                yield piece

    def end(self) -> None:
        if not self._plain and self._taken and not self._work.eof:
            raise Unusable("its answer was cut off")

    def _decode(self, chunk: bytes) -> bytes:
        before, self._taken = self._taken, True
        try:
            piece = self._work.decompress(chunk, _PIECE)
        except zlib.error as error:
            if self._encoding != "deflate" or (before and len(self._head) >= _HEADER):
                raise Unusable(f"its answer is no valid {self._encoding}") from error
            return self._headless(chunk)
        self._head += chunk[: _HEADER - len(self._head)]
        return piece

    def _headless(self, chunk: bytes) -> bytes:
        """Try without the header of two bytes, which some leave away."""
        self._work = zlib.decompressobj(_RAW)
        chunk, self._head = self._head + chunk, b"--"
        try:
            return self._work.decompress(chunk, _PIECE)
        except zlib.error as error:
            raise Unusable(f"its answer is no valid {self._encoding}") from error


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count} bytes"
