"""Append lines to the decision log under its lock: find the end, write, move the head behind.

A line is whole or it is not there: what a full disk takes of one is cut off again. The head moves
with each line, so a kage that is killed leaves at most one line behind it.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kage.core import locks
from kage.core.files import content, opened, reading
from kage.permissions.decisions.chain import (
    FILE,
    HEAD,
    HEAD_SIZE,
    LOCK,
    Head,
    files,
    line_digest,
    parse,
)

Gap = Callable[[str], Mapping[str, Any]]  # makes the record that tells what was found wrong


class Appender:
    """The log's folder while this kage alone may write to it.

    Args:
        directory: Made if it is missing.
        gap: Makes the record that stands where something else wrote to the log.
    """

    def __init__(self, directory: Path, gap: Gap) -> None:
        self.directory = directory
        self._gap = gap
        self._lock = -1
        self._head = -1
        self._stream = -1
        self._open = ""  # the file of ``_stream``
        self._end: Head | None = None  # where the next record goes, once it was looked up

    def __enter__(self) -> Appender:
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
        if self._stream >= 0:
            os.close(self._stream)
        os.close(self._head)
        os.close(self._lock)  # lets go of the lock as well

    def put(self, body: Mapping[str, Any]) -> None:
        """Write one record, behind one that tells what was found wrong with the log's end.

        Raises:
            OSError: it could not be written; nothing of it stands.
        """
        end, self._end = self._end, None  # where this fails, the end is looked up again
        if end is None:
            end, trouble = self._found()
            end = self._append(end, self._gap(trouble)) if trouble else end
        self._end = self._append(end, body)

    def flush(self) -> None:
        """Wait until the disk has what was put.

        Raises:
            OSError: it may not have it.
        """
        if self._stream >= 0:
            _flush(self._stream)

    def _found(self) -> tuple[Head, str]:
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

    def _append(self, head: Head, body: Mapping[str, Any]) -> Head:
        """Write one line and move the head behind it."""
        month = str(body["time"])[:7] + ".jsonl"
        name = max(month, head.file)  # a clock that went back does not reopen a finished file
        fields = {"n": head.count + 1, "prev": head.digest, **body}
        line = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=str)
        data = line.encode("utf-8", "backslashreplace")
        stream = self._file(name)
        before = os.fstat(stream).st_size
        _write_whole(stream, data + b"\n", before)
        moved = Head(
            count=head.count + 1, digest=line_digest(data), file=name, size=before + len(data) + 1
        )
        os.pwrite(self._head, moved.encode(), 0)
        return moved

    def _file(self, name: str) -> int:
        if self._open != name:
            if self._stream >= 0:
                _flush(self._stream)  # a later flush is about the file that follows
                os.close(self._stream)
                self._stream, self._open = -1, ""
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._stream = opened(self.directory / name, flags)
            self._open = name
        return self._stream

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
