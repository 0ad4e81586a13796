"""What kage remembers of one server: its stderr, stray lines, protocol trace and counters.

Everything is bounded: the last lines stay in memory, all of stderr goes to a file that is made
with the first line and rotated at its limit.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kage.core.sanitise import clip

MAX_LINES = 2_000  # lines of stderr in memory
MAX_ENTRIES = 1_000  # trace entries in memory
MAX_STRAYS = 10  # stray lines kept; the rest is only counted
MAX_BYTES = 4 << 20  # of the file; as much again stands in the one before it
LINE_CLIP = 4_000  # characters of a line in memory
TEXT_CLIP = 2_000  # characters of a trace entry
_FLUSH_EVERY = 1.0  # seconds a line may wait in front of the file
_BUFFER = 1 << 16  # bytes
_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

Direction = Literal["", "in", "out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEntry:
    """One message that passed, or one thing kage did about it; redacted and clipped."""

    time: float  # seconds since the epoch
    text: str
    direction: Direction = ""
    kind: str = ""  # request, response, error, notification
    method: str = ""
    id: int | str | None = None
    size: int = 0  # bytes on the wire


@dataclass(slots=True)
class Counters:
    """How much there was, kept or not."""

    lines: int = 0  # of stderr
    strays: int = 0  # lines on stdout that were no protocol
    messages: int = 0  # log messages over the protocol
    entries: int = 0  # trace entries
    dropped: int = 0  # notifications left out under pressure
    bytes_in: int = 0
    bytes_out: int = 0


@dataclass(slots=True)
class _File:
    """An appended file of whole lines, opened with the first one."""

    path: Path
    limit: int
    descriptor: int = -1
    size: int = 0
    waiting: bytearray = field(default_factory=bytearray)
    flushed: float = field(default_factory=time.monotonic)

    def add(self, line: bytes) -> None:
        if self.descriptor < 0:
            self._open()
        if self.size and self.size + len(line) > self.limit:
            self.close()
            os.replace(self.path, self.path.with_name(self.path.name + ".1"))
            self._open()
        self.waiting += line
        self.size += len(line)
        now = time.monotonic()
        if len(self.waiting) > _BUFFER or now - self.flushed > _FLUSH_EVERY:
            self.flush()
            self.flushed = now

    def flush(self) -> None:
        while self.waiting and self.descriptor >= 0:
            del self.waiting[: os.write(self.descriptor, self.waiting)]

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close without writing what waits."""
        descriptor, self.descriptor = self.descriptor, -1
        self.waiting.clear()
        if descriptor >= 0:
            os.close(descriptor)

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        self.descriptor = os.open(self.path, flags, 0o600)
        info = os.fstat(self.descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "is no regular file")
        self.size = info.st_size


class _Message(str):
    """A line that came over the protocol and not on stderr."""

    __slots__ = ()


class Journal:
    """The record of one server; every text goes through ``redact`` before it is kept.

    Texts are kept as they came otherwise: whoever shows them makes them visible first.

    Args:
        name: the server's name; also the file's, with odd characters replaced.
        folder: where the file of stderr lines goes; None: memory only.
        redact: takes secrets out of a text.
        max_lines: lines of stderr kept in memory.
        max_bytes: limit of the file; the one before it is kept as ``.1``.
    """

    def __init__(
        self,
        name: str,
        *,
        folder: Path | None = None,
        redact: Callable[[str], str] = str,
        max_lines: int = MAX_LINES,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.name = name
        self.counters = Counters()
        self.fault = ""  # why the file is no longer written, "" while all is well
        self._redact = redact
        self._lines: deque[str] = deque(maxlen=max_lines)
        self._strays: list[str] = []
        self._entries: deque[TraceEntry] = deque(maxlen=MAX_ENTRIES)
        self._file = None if folder is None else _File(folder / file_name(name), max_bytes)

    @property
    def path(self) -> Path | None:
        """The file of stderr lines, which may not exist yet; None: memory only."""
        return None if self._file is None else self._file.path

    def stderr(self, line: str) -> None:
        """Add a line of the server's stderr."""
        self.counters.lines += 1
        text = self._redact(line)
        self._lines.append(clip(text, LINE_CLIP))
        if self._file is None or self.fault:
            return
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S ")
        try:
            self._file.add((stamp + text).encode("utf-8", "replace") + b"\n")
        except OSError as error:  # disk full, read-only, a link in its place: go on in memory
            self._give_up(error)

    def message(self, text: str) -> None:
        """Add a log message the server sent over the protocol; it is no line of stderr."""
        self.counters.messages += 1
        self._lines.append(_Message(clip(self._redact(f"log {text}"), LINE_CLIP)))

    def stray(self, line: str) -> None:
        """Count a line on stdout that is no protocol; the first few are kept."""
        self.counters.strays += 1
        if len(self._strays) < MAX_STRAYS:
            self._strays.append(clip(self._redact(line), TEXT_CLIP))

    def trace(
        self,
        text: str,
        *,
        direction: Direction = "",
        kind: str = "",
        method: str = "",
        id: int | str | None = None,
        size: int = 0,
    ) -> None:
        """Add an entry to the protocol trace."""
        self.counters.entries += 1
        entry = TraceEntry(
            time=time.time(),
            text=clip(self._redact(text), TEXT_CLIP),
            direction=direction,
            kind=kind,
            method=clip(method, 200),
            id=clip(id, 200) if isinstance(id, str) else id,
            size=size,
        )
        self._entries.append(entry)

    def lines(self) -> tuple[str, ...]:
        """Give the stderr lines and log messages in memory, oldest first."""
        return tuple(self._lines)

    def last(self, count: int) -> tuple[str, ...]:
        """Give the last ``count`` stderr lines."""
        said = [line for line in self._lines if not isinstance(line, _Message)]
        return tuple(said[-count:]) if count > 0 else ()

    def strays(self) -> tuple[str, ...]:
        """Give the first stray lines."""
        return tuple(self._strays)

    def entries(self) -> tuple[TraceEntry, ...]:
        """Give the trace in memory, oldest first."""
        return tuple(self._entries)

    def flush(self) -> None:
        """Bring what was added onto the disk."""
        if self._file is not None and not self.fault:
            try:
                self._file.flush()
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        """Write what is left and close the file; adding opens it again."""
        self.flush()
        if self._file is not None and not self.fault:
            try:
                self._file.close()
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        if self._file is not None:
            self.fault = f"{self._file.path}: {error.strerror or error}"
            self._file.abandon()


def file_name(name: str) -> str:
    """Give the name of the file that keeps what the server ``name`` wrote."""
    plain = "".join(letter if letter in _PLAIN else "_" for letter in name)[:100]
    return f"{plain.lstrip('.') or 'server'}.log"
