"""Cuts a byte stream into lines in linear time and bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

EDGE = 4096  # bytes kept of either end of a line that is too long


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLong:
    """A line over the limit; ``head`` and ``tail`` are its first and last bytes.

    It is told twice: as soon as the limit is crossed (``ended`` False, ``tail`` empty) and when
    its newline has come.
    """

    head: bytes
    tail: bytes
    size: int  # bytes seen so far, without the newline
    ended: bool


class Framer:
    """Feed it chunks, take lines; holds at most ``limit`` bytes and one chunk.

    Args:
        limit: the longest line in bytes, without its newline.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()  # one buffer, so that many tiny chunks cost no more than few
        self._size = 0
        self._head = b""  # non-empty: the line is being skipped
        self._tail = b""

    @property
    def pending(self) -> int:
        """Bytes of the unfinished line, skipped ones included."""
        return self._size

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """Give each line that ``chunk`` completes, without its newline."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            if self._size or end - start > self._limit:
                yield from self._add(chunk[start:end])
                yield self._finish()
            else:  # a whole line inside one chunk: nothing to put together
                yield chunk[start:end]
            start = end + 1
        if start < len(chunk):
            yield from self._add(chunk[start:] if start else chunk)

    def end(self) -> Iterator[bytes | TooLong]:
        """Give what stands after the last newline, if anything does."""
        if self._size:
            yield self._finish()

    def _add(self, part: bytes) -> Iterator[TooLong]:
        self._size += len(part)
        if self._head:
            self._head += part[: EDGE - len(self._head)]
            self._tail = (self._tail + part[-EDGE:])[-EDGE:]
            return
        self._line += part
        if self._size > self._limit:
            self._head, self._tail = bytes(self._line[:EDGE]), bytes(self._line[-EDGE:])
            self._line = bytearray()
            yield TooLong(head=self._head, tail=b"", size=self._size, ended=False)

    def _finish(self) -> bytes | TooLong:
        line: bytes | TooLong
        if self._head:
            line = TooLong(head=self._head, tail=self._tail, size=self._size, ended=True)
        else:
            line = bytes(self._line)
            self._line = bytearray()
        self._size, self._head, self._tail = 0, b"", b""
        return line
