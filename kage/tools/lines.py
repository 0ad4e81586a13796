"""Read a range of lines out of a file of any size without holding more than the range."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

from kage.core.errors import ToolError
from kage.tools.encoding import Encoding, size

CHUNK = 1 << 20
_FIRST = 1 << 16  # bytes of the first look, which most files end in; more costs fresh memory
MAX_TRANSCODED = 32 << 20  # bytes of a UTF-16 file, which has to be held whole
_OVERHEAD = 8  # characters a line number and a line feed take
MAX_SCAN = 4 << 30  # bytes gone through to find a line; about 5 s
_INLINE = 4 << 20  # bytes read on the loop before a thread is worth its hop


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which part of a file: lines ``first`` (1-based) and on, and how much of it is taken."""

    first: int
    count: int  # lines at most
    room: int  # bytes at most
    width: int  # bytes of one line
    start: int = 0  # bytes of the first line that are left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The lines found, as UTF-8 without their line feeds.

    ``more`` says whether the file goes on after them, ``clipped`` which numbers (1-based) were
    cut to the width, ``total`` how many lines the file has, where its end was reached.
    """

    lines: tuple[bytes, ...]
    first: int
    more: bool
    clipped: tuple[int, ...]
    total: int | None


class _Picker:
    """Takes chunks of a file and keeps the bytes of the lines asked for."""

    def __init__(self, wanted: Wanted) -> None:
        self._skip = wanted.first - 1
        self._first = wanted.first
        self._count = wanted.count
        self._room = wanted.room
        self._width = wanted.width
        self._before = wanted.start  # bytes of the line still to be left out
        self._open = b""  # of the line that is not finished yet, cut to the width
        self._started = False
        self._cut = False
        self._lines: list[bytes] = []
        self._clipped: list[int] = []
        self._passed = 0
        self._tail_line = 0  # 1 when the part gone over ends in an unfinished line
        self.full = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes; ``full`` becomes true when nothing more is needed."""
        at = self._skip_lines(data)
        while at < len(data) and not self.full:
            if len(self._lines) >= self._count or self._room <= 0:
                self.full = True
                return
            end = data.find(b"\n", at)
            stop = len(data) if end < 0 else end
            self._extend(data, at, stop)
            if end >= 0:
                self._finish()
            at = stop + 1

    def close(self) -> None:
        """Say that the file has ended."""
        if self._started and not self.full:
            self._finish()

    def _skip_lines(self, data: bytes) -> int:
        at = 0
        if self._skip:
            inside = data.count(b"\n")
            if inside < self._skip:
                self._skip -= inside
                self._passed += inside
                self._tail_line = 0 if data.endswith(b"\n") else 1
                return len(data)
            while self._skip:
                at = data.index(b"\n", at) + 1
                self._skip -= 1
                self._passed += 1
            self._tail_line = 0
        return at

    def _extend(self, data: bytes, at: int, stop: int) -> None:
        self._started = True
        skipped = min(self._before, stop - at)
        self._before -= skipped
        at += skipped
        spare = self._width - len(self._open)
        if stop - at > spare:
            self._cut = True
        if spare > 0:
            self._open += data[at : min(stop, at + spare)]

    def _finish(self) -> None:
        if self._cut:
            self._clipped.append(self._first + len(self._lines))
        self._lines.append(self._open)
        self._room -= len(self._open) + _OVERHEAD
        self._open, self._started, self._cut, self._before = b"", False, False, 0

    def result(self) -> Range:
        """Give what was kept."""
        total = None if self.full else self._passed + len(self._lines) + self._tail_line
        return Range(
            lines=tuple(self._lines),
            first=self._first,
            more=self.full,
            clipped=tuple(self._clipped),
            total=total,
        )


async def pick(descriptor: int, encoding: Encoding, wanted: Wanted) -> Range:
    """Read the lines ``wanted``.

    Memory is bounded by the range, not by the file. Cancelling stops between two chunks.

    Raises:
        ToolError: the range lies too far into the file to look for it.
        OSError: reading failed.
    """
    picker = _Picker(wanted)
    if encoding.name != "utf-8":
        picker.feed(await _transcoded(descriptor, encoding))
        picker.close()
        return picker.result()
    at = len(encoding.mark)
    while not picker.full:
        most = CHUNK if at >= _FIRST else _FIRST
        data = await _chunk(descriptor, at, most)
        picker.feed(data)
        at += len(data)
        if len(data) < most:  # regular files give less only at their end
            picker.close()
            break
        if at > MAX_SCAN:
            raise ToolError(
                f"Line {wanted.first} is more than {size(MAX_SCAN)} into the file",
                fix="Cut the part out with a program first, for example sed or tail with bash",
            )
    return picker.result()


async def _chunk(descriptor: int, at: int, most: int = CHUNK) -> bytes:
    if at < _INLINE:
        return os.pread(descriptor, most, at)
    return await asyncio.to_thread(os.pread, descriptor, most, at)


async def _transcoded(descriptor: int, encoding: Encoding) -> bytes:
    """Give a UTF-16 or UTF-32 file as UTF-8; its line feeds cannot be found in the bytes."""
    data = bytearray()
    while chunk := await _chunk(descriptor, len(encoding.mark) + len(data)):
        data += chunk
        if len(data) > MAX_TRANSCODED:
            raise ToolError(
                f"The file is {encoding.name} and larger than {size(MAX_TRANSCODED)}",
                fix="Convert it to UTF-8 first, for example with iconv",
            )
    return data.decode(encoding.name, "replace").encode()
