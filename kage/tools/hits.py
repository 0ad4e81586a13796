"""Turn what a search printed into lines, each read again from a file that is really inside.

Both engines print ripgrep's format. They go by path, so a folder swapped for a link while they
run could lead them outside; what is shown is therefore what a confined read finds at the same
offset, and a line that is not there is dropped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kage.tools import confine
from kage.tools.confine import Place
from kage.tools.encoding import sniff

WIDTH = 500  # characters of one line
MAX_COLUMNS = 1000  # bytes of a line the engine prints; longer ones it only announces
_BEFORE = 100  # bytes shown before the match in a long line
_WHOLE = 16 << 20  # bytes of a file that is decoded to find its lines (UTF-16, byte order marks)
_OMITTED = b"[Omitted long "
_RECORD = re.compile(rb"(\d+)(?::(\d+):|-)(\d+)[:-](.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Line:
    """One line as an engine printed it; ``column`` (1-based) is 0 for a line of context."""

    number: int
    column: int
    offset: int
    text: bytes


@dataclass(frozen=True, slots=True)
class File:
    """The lines found in one file; ``path`` is relative to the searched folder."""

    path: str
    lines: tuple[Line, ...]


def parse(data: bytes, *, strip: int, whole: bool) -> list[File]:
    """Take apart ``path NUL number:column:offset:text`` records, sorted by path.

    ``strip`` is the length of what stands in front of every path. The last record is left out
    when the output is not ``whole``.
    """
    files: dict[bytes, list[Line]] = {}
    for path, rest in _records(data, whole=whole):
        found = _RECORD.match(rest)
        if found:
            number, column, offset, text = found.groups()
            files.setdefault(path, []).append(
                Line(int(number), int(column or 0), int(offset), text)
            )
    return [File(os.fsdecode(path[strip:]), tuple(lines)) for path, lines in sorted(files.items())]


def _records(data: bytes, *, whole: bool) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at < len(data):
        if data.startswith(b"--\n", at):  # between two groups of context; paths start with ./
            at += 3
            continue
        middle = data.find(b"\0", at)
        if middle < 0:
            return
        end = data.find(b"\n", middle)
        if end < 0:
            if not whole:
                return
            end = len(data)
        yield data[at:middle], data[middle + 1 : end]
        at = end + 1


def parse_names(data: bytes, *, strip: int) -> list[str]:
    """Take apart ``path NUL`` records, sorted; half a record at the end is left out."""
    return sorted(os.fsdecode(name[strip:]) for name in data.split(b"\0")[:-1])


def parse_counts(data: bytes, *, strip: int) -> list[tuple[str, int]]:
    """Take apart ``path NUL number`` records, sorted by path."""
    found: list[tuple[str, int]] = []
    for path, rest in _records(data, whole=False):
        if rest.isdigit():
            found.append((os.fsdecode(path[strip:]), int(rest)))
    return sorted(found)


def confirm(place: Place, files: Iterable[File]) -> Iterator[tuple[File, list[tuple[Line, str]]]]:
    """Read the lines again, confined; give each file with the lines that really stand there."""
    try:
        with confine.folder(place.parts) as top:
            for file in files:
                shown = _confirm_file(top, file)
                if shown:
                    yield file, shown
    except OSError:
        return  # the searched folder itself went away


def _confirm_file(top: int, file: File) -> list[tuple[Line, str]]:
    *folders, name = file.path.split("/")
    try:
        with confine.folder(folders, start=top) as held:
            descriptor, _ = confine.open_at(held, name)
    except (OSError, ValueError):
        return []
    try:
        read = ((line, _reread(descriptor, line)) for line in file.lines)
        shown = [(line, text) for line, text in read if text is not None]
        return shown or _from_whole(descriptor, file)
    except OSError:
        return []
    finally:
        os.close(descriptor)


def _reread(descriptor: int, line: Line) -> str | None:
    if line.text.startswith(_OMITTED):
        return _window(descriptor, line)
    ahead = min(line.offset, 1)
    data = os.pread(descriptor, len(line.text) + ahead + 1, line.offset - ahead)
    start, text = data[:ahead], data[ahead:]
    ends = text[len(line.text) :] in (b"", b"\n")
    if text[: len(line.text)] != line.text or start not in (b"", b"\n") or not ends:
        return None
    return _clip(line.text)


def _window(descriptor: int, line: Line) -> str | None:
    """Show the part of a long line the match is in."""
    start = line.offset + max(line.column - 1 - _BEFORE, 0)
    data = os.pread(descriptor, WIDTH, start).partition(b"\n")[0]
    text = data.decode("utf-8", "replace").strip("\ufffd")
    return f"{'…' if start > line.offset else ''}{text}{'…' if len(data) == WIDTH else ''}"


def _clip(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace").rstrip("\r")
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}…"


def _from_whole(descriptor: int, file: File) -> list[tuple[Line, str]]:
    """Find the lines by number where the engine saw other bytes than the file has."""
    data = os.pread(descriptor, _WHOLE, 0)
    encoding = sniff(data)
    if encoding is None or not encoding.mark:
        return []
    lines = data[len(encoding.mark) :].decode(encoding.name, "replace").split("\n")
    shown: list[tuple[Line, str]] = []
    for line in file.lines:
        if line.number > len(lines):
            continue
        there = lines[line.number - 1].rstrip("\r")
        said = line.text.decode("utf-8", "replace").rstrip("\r").removeprefix("\ufeff")
        if there == said or line.text.startswith(_OMITTED):
            shown.append((line, there if len(there) <= WIDTH else f"{there[:WIDTH]}…"))
    return shown
