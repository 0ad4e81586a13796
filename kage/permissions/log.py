"""The decision log: one record before each effect and one after, chained, by many kages at once.

``chain`` says how a line looks and proves it. Here is the writer: under a lock it reads the head,
checks that the file ends there, appends, and moves the head. It never reads the log again. A disk
that cannot take a record does not stop a call: that is told once a minute, and the next record
that can be written is preceded by a ``gap`` record with the number that are missing.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kage.core import locks
from kage.core.files import content, opened, reading
from kage.core.redact import Redactor
from kage.core.sanitise import clip
from kage.permissions.chain import (
    FILE,
    HEAD,
    HEAD_SIZE,
    LOCK,
    Head,
    Problem,
    Proof,
    Record,
    files,
    line_digest,
    lines,
    parse,
    prove,
    read,
    verify,
)

__all__ = ["DecisionLog", "Problem", "Proof", "Record", "prove", "read", "verify"]

VERSION = 1
MAX_ARGUMENTS = 16_384  # characters of the arguments one record holds
MAX_TEXT = 4_096  # characters of any other text
WARN_EVERY = 60.0  # seconds


class DecisionLog:
    """Appends to ``<data>/decisions``; safe to use from several processes and threads."""

    def __init__(
        self,
        directory: Path,
        *,
        redact: Redactor | None = None,
        on_trouble: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Write nothing yet.

        Args:
            directory: Made with the first record.
            redact: Applied to every text before it is written.
            on_trouble: Told in words, at most once a minute, that records cannot be written;
                called from the thread that found out.
            clock: Seconds since the epoch.
        """
        self.directory = directory
        self.redact = redact or Redactor()
        self._on_trouble = on_trouble
        self._clock = clock
        self._missed = 0
        self._missed_since = 0.0
        self._warned = float("-inf")
        self._alone = threading.Lock()
        self._writer: ThreadPoolExecutor | None = None

    async def write(self, kind: str, fields: Mapping[str, Any], *, sync: bool = False) -> bool:
        """Append one record without holding up the loop; see ``append``.

        A record that was handed over is written even when the caller is cancelled.
        """
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix="decisions")
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._writer, lambda: self.append(kind, fields, sync=sync))
        return await asyncio.shield(work)

    def close(self) -> None:
        """Wait for records under way and end the writer's thread; it can be used again."""
        if self._writer is not None:
            self._writer.shutdown()
            self._writer = None

    def append(self, kind: str, fields: Mapping[str, Any], *, sync: bool = False) -> bool:
        """Append one record; whether it stands on disk. Never raises for a disk that refuses.

        Args:
            kind: "decision", "outcome" or "trust".
            fields: JSON; texts are redacted and cut.
            sync: Wait until the disk has it.
        """
        body = self._body(kind, fields)
        try:
            with self._alone, _Locked(self.directory) as place:
                if self._missed:
                    self._put(place, self._gap(self._missed), sync=False)
                    self._missed = 0
                self._put(place, body, sync=sync)
        except OSError as error:
            self._trouble(error)
            return False
        return True

    def find(self, wanted: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
        """Give the decision records with these ids.

        Args:
            wanted: For each id the month (YYYY-MM) it was made in; only files of that month and
                the one after are read.
        """
        found: dict[str, Mapping[str, Any]] = {}
        kept = files(self.directory)
        for month in sorted(set(wanted.values())):
            ids = {name for name, when in wanted.items() if when == month}
            needle = re.compile(b"|".join(re.escape(json.dumps(name).encode()) for name in ids))
            for file in [file for file in kept if file.name >= f"{month}.jsonl"][:2]:
                for _, raw, finished in lines(file):
                    data = parse(raw) if finished and needle.search(raw) else None
                    if data is None or data.get("kind") != "decision":
                        continue
                    if data.get("id") in ids:
                        found[data["id"]] = data
        return found

    def every(self, kind: str) -> list[Mapping[str, Any]]:
        """Give the records of one kind, oldest first; what cannot be read is passed over.

        Raises:
            OSError: a file cannot be read.
        """
        needle = f'"kind":{json.dumps(kind)}'.encode()
        found: list[Mapping[str, Any]] = []
        for file in files(self.directory):
            raw = content(file)
            if needle not in raw:  # the rule: such records are few
                continue
            for line in raw.split(b"\n")[:-1]:
                data = parse(line) if needle in line else None
                if data is not None and data.get("kind") == kind:
                    found.append(data)
        return found

    def head(self) -> Head:
        """Give count and hash of the last record, to be shown or kept elsewhere."""
        try:
            return Head.decode(content(self.directory / HEAD)) or Head()
        except OSError:
            return Head()

    # -- records -----------------------------------------------------------------------------

    def _body(self, kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        body: dict[str, Any] = {"v": VERSION, "kind": kind, "time": self._stamp()}
        for name, value in fields.items():
            body[name] = self._arguments(value) if name == "arguments" else self._text(value)
        return body

    def _text(self, value: Any) -> Any:
        return clip(self.redact(value), MAX_TEXT) if isinstance(value, str) else value

    def _arguments(self, value: Any) -> Any:
        clean = _redacted(value, self.redact, 0)
        try:
            text = json.dumps(clean, ensure_ascii=False, allow_nan=False)
        except (ValueError, TypeError, RecursionError):
            return {"unreadable": clip(self.redact(repr(value)), MAX_TEXT)}
        if len(text) <= MAX_ARGUMENTS:
            return clean
        return {"cut": text[:MAX_ARGUMENTS], "characters": len(text)}

    def _gap(self, missed: int) -> dict[str, Any]:
        since = _iso(self._missed_since)
        why = "records could not be written"
        return {**self._body("gap", {}), "missed": missed, "since": since, "reason": why}

    def _stamp(self) -> str:
        return _iso(self._clock())

    # -- the file ----------------------------------------------------------------------------

    def _put(self, place: _Locked, body: Mapping[str, Any], *, sync: bool) -> None:
        head, trouble = place.head()
        month = str(body["time"])[:7] + ".jsonl"
        name = max(month, head.file)  # a clock that went back does not reopen a finished file
        if trouble:
            gap = {**self._body("gap", {}), "missed": 0, "reason": trouble}
            head = place.append(head, max(month, head.file), gap)
        place.append(head, name, body, sync=sync)

    def _trouble(self, error: OSError) -> None:
        if not self._missed:
            self._missed_since = self._clock()
        self._missed += 1
        now = time.monotonic()
        if self._on_trouble is None or now - self._warned < WARN_EVERY:
            return
        self._warned = now
        why = error.strerror or type(error).__name__
        self._on_trouble(
            f"The decision log cannot be written ({why}: {self.directory}); calls go on, "
            f"{self._missed} not recorded so far"
        )


class _Locked:
    """The log's folder while this kage alone may write to it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = -1
        self._head = -1

    def __enter__(self) -> _Locked:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._lock = opened(self.directory / LOCK, flags)
        try:
            locks.take(self._lock)
            self._head = opened(self.directory / HEAD, flags)
        except BaseException:  # goes on; the lock must not stay
            os.close(self._lock)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._head)
        os.close(self._lock)  # lets go of the lock as well

    def head(self) -> tuple[Head, str]:
        """Give where the next record goes, and what was found wrong there, "" for nothing."""
        raw = os.pread(self._head, HEAD_SIZE, 0)
        head = Head.decode(raw)
        if head is None:
            found = self._rebuilt()
            if not raw and found == Head():
                os.pwrite(self._head, found.encode(), 0)  # so that a first record is one ahead
                return found, ""
            return found, "the head was missing or unreadable; taken from the last record"
        if not head.file:
            return self._later(head)
        try:
            size = os.stat(self.directory / head.file).st_size
        except FileNotFoundError:
            return head, f"{head.file} is gone"
        if size == head.size:
            return self._later(head)
        if size < head.size:
            self._end_line(head.file)
            return head, f"{head.file} is shorter than it was"
        ahead, trouble = self._caught_up(head)
        return (ahead, trouble) if trouble else self._later(ahead)

    def append(self, head: Head, name: str, body: Mapping[str, Any], *, sync: bool = False) -> Head:
        """Write one line and move the head behind it."""
        fields = {"n": head.count + 1, "prev": head.digest, **body}
        line = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=str)
        data = line.encode("utf-8", "backslashreplace")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        stream = opened(self.directory / name, flags)
        try:
            before = os.fstat(stream).st_size
            _write_whole(stream, data + b"\n", before)
            moved = Head(
                count=head.count + 1,
                digest=line_digest(data),
                file=name,
                size=before + len(data) + 1,
            )
            if sync:
                _flush(stream)
        finally:
            os.close(stream)
        os.pwrite(self._head, moved.encode(), 0)
        return moved

    def _later(self, head: Head) -> tuple[Head, str]:
        """Go on in a file that was begun by a writer that died before it moved the head."""
        names = [name for name in os.listdir(self.directory) if name > head.file]
        for name in sorted(name for name in names if FILE.fullmatch(name)):
            head, trouble = self._caught_up(dataclasses.replace(head, file=name, size=0))
            if trouble:
                return head, trouble
        return head, ""

    def _caught_up(self, head: Head) -> tuple[Head, str]:
        """Go on behind the record whose writer died before it moved the head."""
        known = head.count
        with reading(self.directory / head.file) as stream:
            stream.seek(head.size)
            rest = stream.read()
        *whole, half = rest.split(b"\n")
        for raw in whole:
            data = parse(raw)
            if data is None or data.get("prev") != head.digest or data["n"] != head.count + 1:
                self._end_line(head.file)
                return head, f"{head.file} holds lines that no kage wrote"
            head = Head(
                count=head.count + 1,
                digest=line_digest(raw),
                file=head.file,
                size=head.size + len(raw) + 1,
            )
        if not half:
            ahead = head.count - known
            return head, f"{ahead} records stood behind the head" if ahead > 1 else ""
        os.truncate(self.directory / head.file, head.size)
        return head, "half a record was dropped: its writer died"

    def _end_line(self, name: str) -> None:
        """Close a line that was cut off, so that the next record starts one of its own."""
        with os.fdopen(opened(self.directory / name, os.O_RDWR), "rb+") as stream:
            if not stream.seek(0, os.SEEK_END):
                return
            stream.seek(-1, os.SEEK_END)
            if stream.read(1) != b"\n":
                stream.write(b"\n")

    def _rebuilt(self) -> Head:
        """Find the end of the log without a head: the last sound line of the last file."""
        for file in reversed(files(self.directory)):
            self._end_line(file.name)
            found = content(file)
            for raw in reversed(found.split(b"\n")):
                data = parse(raw)
                if data is not None:
                    return Head(
                        count=data["n"],
                        digest=line_digest(raw),
                        file=file.name,
                        size=len(found),
                    )
        return Head()


def _write_whole(stream: int, data: bytes, before: int) -> None:
    """Write all of ``data`` or nothing: half a line is cut off again."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(stream, view) :]
    except OSError:
        os.ftruncate(stream, before)
        raise


def _flush(stream: int) -> None:
    getattr(os, "fdatasync", os.fsync)(stream)


def _redacted(value: Any, redact: Redactor, depth: int) -> Any:
    if depth > 100:
        return "…"
    match value:
        case str():
            return redact(value)
        case Mapping():
            return {
                redact(str(key)): _redacted(item, redact, depth + 1) for key, item in value.items()
            }
        case list() | tuple():
            return [_redacted(item, redact, depth + 1) for item in value]
        case _:
            return value


def _iso(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
