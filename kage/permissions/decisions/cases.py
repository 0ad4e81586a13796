"""Read the decision log as cases: what was decided or done, joined with how it ended.

A log may hold hundreds of thousands of records. It is read backwards, newest file first, where
outcomes come before their decisions, and only as far as asked; of what fits, places are kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from kage.core.files import reading
from kage.permissions.decisions.chain import files, parse

OUTCOME = "outcome"
_BLOCK = 1 << 16
_Place = tuple[Path, int]  # file and offset of a line


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One record, and for a decision the record of how its call ended."""

    fields: Mapping[str, Any]  # everything the record holds, as read
    ended: Mapping[str, Any] | None = None
    file: str = ""  # the name of its file

    @property
    def kind(self) -> str:
        """What sort of record it is: "decision", "trust", "handed", "gap" …"""
        return self.text("kind")

    def text(self, name: str) -> str:
        """Give a field as text, "" when it is missing or no text."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    @property
    def outcome(self) -> str:
        """How the call ended, "" while that is not known."""
        value = self.ended.get("outcome") if self.ended is not None else ""
        return value if isinstance(value, str) else ""

    @property
    def seconds(self) -> float | None:
        """How long the call ran."""
        value = self.ended.get("seconds") if self.ended is not None else None
        return float(value) if isinstance(value, int | float) else None

    def plain(self) -> dict[str, Any]:
        """Give it as JSON has it: the record's own fields, and under ``ended`` what came of it."""
        kept = ("n", "time", "outcome", "seconds", "result")
        ended = self.ended
        shown = {name: ended[name] for name in kept if name in ended} if ended is not None else None
        return {**self.fields, "ended": shown}


Wanted = Callable[[Case], bool]


def everything(case: Case) -> bool:
    """Want every case."""
    return True


def cases(
    directory: Path, wanted: Wanted = everything, *, most: int = 0, since: str = ""
) -> Iterator[Case]:
    """Give the cases that are wanted, oldest first; what cannot be read is passed over.

    Args:
        directory: The folder of the log.
        wanted: Says which.
        most: How many of the newest; 0 = all.
        since: A time; files of earlier months are not opened.

    Raises:
        OSError: a file cannot be read.
    """
    places: list[tuple[_Place, _Place | None]] = []
    for case, place, end in _newest(directory, since[:7]):
        if wanted(case):
            places.append((place, end))
            if most and len(places) >= most:
                break
    with _Shelf() as shelf:
        for (file, offset), end in reversed(places):
            fields = shelf.record(file, offset)
            ended = shelf.record(*end) if end is not None else None
            if fields is not None:
                yield Case(fields=fields, ended=ended, file=file.name)


def newest(directory: Path, wanted: Wanted = everything, *, since: str = "") -> Iterator[Case]:
    """Give the cases that are wanted, newest first, reading no further than asked.

    Raises:
        OSError: a file cannot be read.
    """
    for case, _, _ in _newest(directory, since[:7]):
        if wanted(case):
            yield case


def _newest(directory: Path, month: str) -> Iterator[tuple[Case, _Place, _Place | None]]:
    open_ends: dict[str, tuple[Mapping[str, Any], _Place]] = {}  # by the id of their decision
    for file in reversed(files(directory)):
        if file.stem < month:  # a file holds nothing later than its month
            return
        for offset, raw in backwards(file):
            data = parse(raw)
            if data is None:
                continue
            if data.get("kind") == OUTCOME:
                open_ends[str(data.get("decision"))] = (data, (file, offset))
                continue
            ended, place = open_ends.pop(str(data.get("id")), (None, None))
            yield Case(fields=data, ended=ended, file=file.name), (file, offset), place


def backwards(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield offset and content of each finished line of ``file``, the last one first.

    Raises:
        OSError: it cannot be read.
    """
    with reading(file) as stream:
        at, step = stream.seek(0, os.SEEK_END), _BLOCK
        rest, finished = b"", False  # what follows ``at`` up to a line end, once one was met
        while at:
            step = min(step, at)
            at -= step
            stream.seek(at)
            rest, *whole = (stream.read(step) + rest).split(b"\n")
            if not whole:
                step *= 2  # a long line is not put together again and again
                continue
            end = at + len(rest) + 1
            offsets = []
            for line in whole:
                offsets.append(end)
                end += len(line) + 1
            if not finished:
                whole.pop()
                offsets.pop()
            yield from zip(reversed(offsets), reversed(whole), strict=True)
            finished, step = True, _BLOCK
        if finished:
            yield 0, rest


class _Shelf:
    """Files that are read here and there; the last few stay open."""

    def __init__(self) -> None:
        self._open: dict[Path, BinaryIO] = {}

    def __enter__(self) -> _Shelf:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self._open.values():
            stream.close()

    def record(self, file: Path, offset: int) -> dict[str, Any] | None:
        stream = self._open.get(file)
        if stream is None:
            if len(self._open) > 1:  # a call ends in its month or the next
                self._open.pop(next(iter(self._open))).close()
            stream = self._open[file] = reading(file)
        stream.seek(offset)
        return parse(stream.readline().rstrip(b"\n"))
