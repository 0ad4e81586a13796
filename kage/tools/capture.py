"""Collect the output of a command: its head and tail in memory, all of it in a file, live text."""

from __future__ import annotations

import asyncio
import codecs
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from kage.core.redact import Redactor, Stream
from kage.tools import truncate
from kage.tools.encoding import size

MAX_FILE = 64 << 20  # bytes kept on disk of one command's output
LIVE_GAP = 0.1  # seconds between two live texts
LIVE_MOST = 8000  # characters of one live text; a flood shows its latest part


class Capture:
    """Takes bytes as they come; memory and disk stay bounded however much comes.

    ``limit`` is how many characters ``text()`` gives, its notice included. The file is only
    made when more than that arrives. Secrets are replaced first: a cut one would be no match.
    """

    def __init__(
        self,
        *,
        limit: int,
        scratch: Path,
        name: str,
        live: Callable[[str], None],
        redact: Redactor,
    ) -> None:
        self._limit = limit
        self._scratch = scratch
        self._name = name
        self._live = live
        self._clean = Stream(redact)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head = bytearray()  # everything, until it is more than the limit
        self._tail = bytearray()  # then the latest
        self._file: int | None = None
        self._path: Path | None = None
        self._trouble = ""
        self._pending: list[str] = []
        self._shown_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.total = 0  # bytes
        self.survivors = False  # whether something had to be ended after the shell
        self.strays: Mapping[int, str] = {}  # what runs on: process ids and command lines

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        # as Latin-1 every byte is a character, so what is no secret stays byte for byte
        self._take(self._clean.feed(data.decode("latin-1")).encode("latin-1", "replace"))

    def _take(self, data: bytes) -> None:
        self.total += len(data)
        self._show(self._decoder.decode(data))
        if self._file is None and not self._trouble and self.total > self._limit:
            self._open()
        if self._file is not None:
            self._store(data)
        spare = self._limit - len(self._head)
        if spare > 0:
            self._head += data[:spare]
        self._tail += data[max(spare, 0) :]
        if len(self._tail) > 2 * self._limit:
            del self._tail[: len(self._tail) - self._limit]

    def close(self) -> None:
        """Show what is left and close the file."""
        self._take(self._clean.flush().encode("latin-1", "replace"))
        self._pending.append(self._decoder.decode(b"", final=True))
        self._flush()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def text(self) -> str:
        """Give the output, its middle left out when it is longer than the limit."""
        if self.total <= self._limit:
            return bytes(self._head).decode("utf-8", "replace")
        where = f"the whole output is in {self._path}"
        if self._trouble:
            where = f"the rest could not be kept: {self._trouble}"
        elif self.total > MAX_FILE:
            where = f"its first {size(MAX_FILE)} are in {self._path}"
        room = max(self._limit - len(where) - 120, 0) // 2
        tail_bytes = (bytes(self._head) + bytes(self._tail))[-room:] if room else b""
        head = bytes(self._head[:room]).decode("utf-8", "ignore")
        tail = tail_bytes.decode("utf-8", "ignore")
        head, tail = _whole_lines(head, tail)
        left_out = self.total - len(head.encode()) - len(tail.encode())
        return f"{head}\n[… {size(left_out)} of {size(self.total)} left out; {where} …]\n{tail}"

    def _open(self) -> None:
        try:
            self._file, self._path = truncate.create(self._scratch, f"bash-{self._name}")
            self._write(bytes(self._head))
        except OSError as error:
            self._give_up(error)

    def _store(self, data: bytes) -> None:
        before = self.total - len(data)
        try:
            self._write(data[: max(MAX_FILE - before, 0)])
        except OSError as error:
            self._give_up(error)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and self._file is not None:
            rest = rest[os.write(self._file, rest) :]

    def _give_up(self, error: OSError) -> None:
        """Go on without the file: a full disk costs the rest of the output, not the command."""
        self._trouble = error.strerror or str(error)
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _show(self, text: str) -> None:
        self._pending.append(text)
        if len(self._pending) > 16:
            self._pending = ["".join(self._pending)[-LIVE_MOST:]]
        now = time.monotonic()
        if now - self._shown_at >= LIVE_GAP:
            self._flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LIVE_GAP, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._shown_at = time.monotonic()
        text = "".join(self._pending)
        self._pending = []
        if text:
            self._live(text[-LIVE_MOST:])


def _whole_lines(head: str, tail: str) -> tuple[str, str]:
    """Cut on line borders where one is not too far away."""
    end = head.rfind("\n", len(head) // 2)
    start = tail.find("\n", 0, len(tail) // 2)
    return head[:end] if end >= 0 else head, tail[start + 1 :]
