"""Cuts a stream of bytes into server-sent events, whatever the line ends, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kage.mcp.client.transport.framing import Framer, TooLong

MAX_RETRY = 30_000  # milliseconds a server may have a client wait
_BOM = b"\xef\xbb\xbf"
_MAX_NAME = 100  # bytes of an event's name or id that are kept
_MAX_LINES = 10_000  # of one event


@dataclass(slots=True, kw_only=True)
class Event:
    """One event; of one that is too long only the first lines are kept."""

    name: bytes = b""
    data: list[bytes] = field(default_factory=list)
    size: int = 0  # bytes of all its data
    id: bytes | None = None
    retry: int | None = None  # milliseconds

    @property
    def is_message(self) -> bool:
        """Whether it carries a message of the protocol."""
        return bool(self.data) and self.name in (b"", b"message")


class EventReader:
    """Feed it chunks, take events.

    Args:
        most: The longest line, and the most data of one event, in bytes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._framer = Framer(most + len(b"data: "))
        self._event = Event()
        self._after_cr = False
        self._start = b""  # the first bytes, while they may be a mark of byte order
        self._begun = False

    def feed(self, chunk: bytes) -> Iterator[Event | TooLong]:
        """Give each event ``chunk`` completes, and each line of data that is too long."""
        for piece in self._framer.feed(self._lines(self._unmarked(chunk))):
            if isinstance(piece, TooLong):
                if piece.head.startswith(b"data:"):
                    head = piece.head.removeprefix(b"data:").removeprefix(b" ")
                    yield replace(piece, head=head)
            elif piece:
                self._field(piece)
            else:
                event, self._event = self._event, Event()
                if event.data or event.id is not None or event.retry is not None:
                    yield event

    def _unmarked(self, chunk: bytes) -> bytes:
        """Take the mark of byte order off, which may come in pieces."""
        if self._begun:
            return chunk
        self._start += chunk
        if _BOM.startswith(self._start) and len(self._start) < len(_BOM):
            return b""
        self._begun = True
        chunk, self._start = self._start.removeprefix(_BOM), b""
        return chunk

    def _lines(self, chunk: bytes) -> bytes:
        """Have every line end in a line feed; a carriage return ends one too, at once."""
        if not chunk:
            return chunk
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r") or (self._after_cr and not chunk)
        if b"\r" not in chunk:
            return chunk
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        event = self._event
        match name:
            case b"event":
                event.name = value[:_MAX_NAME]
            case b"data" if len(event.data) < _MAX_LINES:
                event.size += len(value)
                # of what is too long only the first lines are needed, to tell whose it is
                if event.size <= self._most or not event.data:
                    event.data.append(value)
            case b"id" if b"\0" not in value and value.isascii() and len(value) <= _MAX_NAME:
                event.id = value
            case b"retry" if value.isdigit() and len(value) < 10:
                event.retry = min(int(value), MAX_RETRY)
            case b"retry" if value.isdigit():
                event.retry = MAX_RETRY
