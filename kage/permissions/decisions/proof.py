"""Prove the decision log: every record is there, unchanged, in its place, and the head fits.

Three anchors hold the chain: each record names its number and the hash of the one before, and the
head, kept apart, says where it ends. What a kage leaves that was killed while it wrote is no alarm.
Whoever can write the log can write all of it anew, head included; a count and hash noted elsewhere
(``kage log verify`` prints them, ``--noted`` takes them) shows that too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kage.core import locks
from kage.core.files import content, opened
from kage.permissions.decisions.chain import (
    HEAD,
    LOCK,
    START,
    Head,
    Problem,
    files,
    line_digest,
    lines,
    parse,
)

_CUT_OFF = "the line is cut off"
_MISPLACED = "it does not belong here: it was added, repeated or moved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What going through the whole chain showed."""

    problems: tuple[Problem, ...] = ()
    unfinished: Problem | None = None  # no alarm: what a writer left that was killed in between
    gaps: tuple[Problem, ...] = ()  # where kage itself noted that records are missing
    count: int = 0  # number of the last record
    digest: str = START  # its hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A record somebody wrote down elsewhere, to find the log changed as a whole."""

    count: int
    digest: str  # the beginning of its hash


def verify(directory: Path) -> list[Problem]:
    """Give the problems of ``prove``; the first one names the first bad line.

    Raises:
        OSError: the folder cannot be read.
    """
    return list(prove(directory).problems)


def prove(directory: Path, noted: Noted | None = None) -> Proof:
    """Prove the chain from its first line to its head, and tell a killed writer from tampering.

    Raises:
        OSError: the folder cannot be read.
    """
    with _still(directory):
        walk = _Walk(noted=noted)
        for file in files(directory):
            walk.take(file)
        return walk.proof(directory)


@dataclass(frozen=True, slots=True)
class _Mark:
    """One record met on the way."""

    number: int = 0
    digest: str = START
    file: Path = Path()
    line: int = 0


@dataclass(slots=True, kw_only=True)
class _Walk:
    """Goes through all lines and finds its way again behind a bad one."""

    noted: Noted | None = None
    problems: list[Problem] = field(default_factory=list)
    gaps: list[Problem] = field(default_factory=list)
    sound: _Mark = _Mark()  # the last record of the chain so far
    before: _Mark = _Mark()  # the one before it
    strange: _Mark | None = None  # did not fit; counts once the next record follows it
    blamed: int = -1  # index of the problem ``strange`` caused
    half: Problem | None = None  # the last line, when it has no end
    met: bool = False  # the noted record
    told: set[tuple[Path, str]] = field(default_factory=set)  # months found in a file

    def take(self, file: Path) -> None:
        """Go through one file."""
        try:
            for line, raw, finished in lines(file):
                self.half = None
                if not finished:
                    self.half = self._wrong(file, line, _CUT_OFF)
                elif (data := parse(raw)) is None:
                    self._wrong(file, line, "the line is no record")
                else:
                    self._record(data, _Mark(data["n"], line_digest(raw), file, line))
        except OSError as error:
            self._wrong(file, 0, f"it cannot be read: {error.strerror or error}")

    def proof(self, directory: Path) -> Proof:
        """Compare the end with the head and with what was noted."""
        head = _head_of(directory)
        self._settle(head)
        unfinished = self._unfinished(head)
        if unfinished is None:
            self.problems += self._head_faults(directory, head)
        else:
            self.problems.clear()
        if self.noted is not None and not self.met:
            what = f"record {self.noted.count}, which was noted, is not in the log"
            self.problems.append(Problem(file=directory, line=0, what=what))
        return Proof(
            problems=tuple(self.problems),
            unfinished=unfinished,
            gaps=tuple(self.gaps),
            count=self.sound.number,
            digest=self.sound.digest,
        )

    # -- one record --------------------------------------------------------------------------

    def _record(self, data: dict[str, Any], mark: _Mark) -> None:
        prev = data.get("prev")
        if (mark.number, prev) == (self.sound.number + 1, self.sound.digest):
            if self.strange is not None:
                self._misplaced()
            self._accept(mark)
        elif self.strange is not None and (mark.number, prev) == (
            self.strange.number + 1,
            self.strange.digest,
        ):
            self._accept(self.strange)
            self._accept(mark)
        else:
            self._unfit(mark, prev)
        self._look_at(data, mark)

    def _accept(self, mark: _Mark) -> None:
        self.before, self.sound, self.strange = self.sound, mark, None

    def _unfit(self, mark: _Mark, prev: object) -> None:
        wanted = self.sound.number + 1
        file, line = mark.file, mark.line
        if mark.number < wanted:
            what = f"record {mark.number} stands here again, or was moved here"
        elif mark.number == wanted and self.sound.number:
            file, line = self.sound.file, self.sound.line
            what = f"it was changed: record {wanted} was written after another one"
        elif mark.number == wanted:
            what = "it does not begin the log: it names a record before it"
        elif prev == self.sound.digest:
            what = f"it is record {mark.number}, expected {wanted}"
        elif mark.number == wanted + 1:
            what = f"record {wanted} is missing before it"
        else:
            what = f"records {wanted} to {mark.number - 1} are missing before it"
        self.blamed = len(self.problems)
        self.strange = mark
        self._wrong(file, line, what)

    def _misplaced(self) -> None:
        assert self.strange is not None
        self.problems[self.blamed] = Problem(
            file=self.strange.file, line=self.strange.line, what=_MISPLACED
        )

    def _look_at(self, data: dict[str, Any], mark: _Mark) -> None:
        noted = self.noted
        if noted is not None and mark.number == noted.count:
            self.met = self.met or mark.digest.startswith(noted.digest)
        month = str(data.get("time", ""))[:7]
        if month > mark.file.stem and (mark.file, month) not in self.told:
            self.told.add((mark.file, month))
            self._wrong(mark.file, mark.line, f"it is of {month}, so it was moved into this file")
        if data.get("kind") == "gap":
            missed, reason = data.get("missed"), data.get("reason")
            what = f"{missed} records are missing: {reason}" if missed else str(reason)
            self.gaps.append(Problem(file=mark.file, line=mark.line, what=what))

    def _wrong(self, file: Path, line: int, what: str) -> Problem:
        problem = Problem(file=file, line=line, what=what)
        self.problems.append(problem)
        return problem

    # -- the end -----------------------------------------------------------------------------

    def _settle(self, head: Head | None) -> None:
        """Say whether a last record that did not fit is part of the chain: the head knows."""
        if self.strange is None:
            return
        if head is not None and (head.count, head.digest) == (self.sound.number, self.sound.digest):
            self._misplaced()
        else:
            self._accept(self.strange)

    def _unfinished(self, head: Head | None) -> Problem | None:
        """Give what a writer left that was killed before it moved the head."""
        if head is None:
            return None
        if self.half is not None:
            fits = (head.count, head.digest) == (self.sound.number, self.sound.digest)
            if self.problems != [self.half] or not fits:
                return None
            what = "half a record: its writer died"
            return Problem(file=self.half.file, line=self.half.line, what=what)
        if self.problems or not self.sound.number:
            return None
        if (head.count, head.digest) != (self.before.number, self.before.digest):
            return None
        what = "a whole record whose writer died before it moved the head"
        return Problem(file=self.sound.file, line=self.sound.line, what=what)

    def _head_faults(self, directory: Path, head: Head | None) -> Iterator[Problem]:
        place, end = directory / HEAD, self.sound
        if head is None:
            if end.number or (place.exists() and place.stat().st_size):
                what = "the head is missing or cannot be read"
                yield Problem(file=place, line=0, what=what)
            return
        last = end.file if end.number else directory
        if head.count != end.number:
            what = f"the log ends with record {end.number}, the head says {head.count}"
            yield Problem(file=last, line=0, what=what)
        elif head.digest != end.digest:
            what = f"the last record is not the one the head names ({HEAD})"
            yield Problem(file=last, line=end.line, what=what)
        elif end.number and head.file != last.name:
            what = f"the head says the log ends in {head.file or 'no file'}, it ends in {last.name}"
            yield Problem(file=place, line=0, what=what)
        elif end.number and not self.problems and head.size != last.stat().st_size:
            what = f"the head says {last.name} has {head.size} bytes"
            yield Problem(file=place, line=0, what=what)


def _head_of(directory: Path) -> Head | None:
    """Read the head; None when there is none or it cannot be read."""
    try:
        raw = content(directory / HEAD)
    except OSError:
        return None
    return Head.decode(raw)


@contextmanager
def _still(directory: Path) -> Iterator[None]:
    """Keep writers out, so that lines and head belong together; a log without a lock is still."""
    try:
        lock = opened(directory / LOCK, os.O_RDONLY)
    except FileNotFoundError:
        yield
        return
    try:
        locks.take(lock, shared=True)
        yield
    finally:
        os.close(lock)
