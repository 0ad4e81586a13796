"""Search file contents in pure Python, in a process of its own; prints ripgrep's format."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kage.tools import confine, globs, hits, regexes
from kage.tools.answering import answer
from kage.tools.encoding import sniff
from kage.tools.walk import Walk

MAX_FILE = 128 << 20  # bytes of a file that is searched
_CHUNK = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to search; the same to the worker as to ripgrep."""

    top: list[str]  # names from "/" of where ignore files begin to count
    start: list[str]  # names from "/" of the folder to search
    only: str  # a single file in it, or ""
    prefix: str  # what stands in front of every path printed
    pattern: str
    literal: bool
    ignore_case: bool
    glob: str
    hidden: bool
    ignored: bool
    mode: str
    context: int
    per_file: int
    budget: int  # bytes of output after which to stop

    def dump(self) -> bytes:
        """Give it as JSON."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__}).encode()


def main() -> None:
    """Answer one request from stdin."""
    answer(lambda data: search(Request(**json.loads(data))))


def search(request: Request) -> bytes:
    """Give the matches in ripgrep's format.

    Raises:
        ToolError: the pattern means something else to Python.
    """
    pattern = regexes.portable(
        request.pattern, literal=request.literal, ignore_case=request.ignore_case
    )
    finder = _Finder(pattern)
    out = bytearray()
    for path, descriptor, size in _files(request):
        try:
            if size <= MAX_FILE:
                out += _one(finder, request, path, _load(descriptor, size))
        except OSError:
            continue
        finally:
            os.close(descriptor)
        if len(out) > request.budget:
            break
    return bytes(out)


def _files(request: Request) -> Iterator[tuple[str, int, int]]:
    if request.only:
        with confine.folder(request.start) as held:
            descriptor, status = confine.open_at(held, request.only)
        yield request.only, descriptor, status.st_size
        return
    fits: Callable[[str], bool] = globs.matcher(request.glob) if request.glob else _every
    walk = Walk(
        top=request.top, start=request.start, hidden=request.hidden, ignored=request.ignored
    )
    for entry in walk:
        if not entry.is_file or not fits(entry.path):
            continue
        try:
            descriptor = os.open(
                entry.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=entry.parent
            )
        except OSError:
            continue
        yield entry.path, descriptor, -1


def _every(path: str) -> bool:
    return True


def _load(descriptor: int, size: int) -> bytes:
    """Read a file; what is not regular or too large after all reads as empty."""
    data = os.read(descriptor, _CHUNK)
    if len(data) < _CHUNK:
        return data
    if os.fstat(descriptor).st_size > MAX_FILE:
        return b""
    parts = [data]
    held = len(data)
    while held <= MAX_FILE and (data := os.read(descriptor, 1 << 20)):
        parts.append(data)
        held += len(data)
    return b"".join(parts)


class _Finder:
    """Looks for one pattern in bytes, as text where they are not plain ASCII."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._text = pattern
        self._bytes: re.Pattern[bytes] | None = None
        if pattern.pattern.isascii():
            flags = pattern.flags & ~re.UNICODE
            self._bytes = re.compile(pattern.pattern.encode(), flags)

    def column(self, data: bytes) -> int | None:
        """Give the 0-based byte column of the first match, or None."""
        if self._bytes is not None and data.isascii():
            found = self._bytes.search(data)
            return None if found is None else found.start()
        text = data.decode("utf-8", "surrogateescape")
        there = self._text.search(text)
        if there is None:
            return None
        return len(text[: there.start()].encode("utf-8", "surrogateescape"))


def _one(finder: _Finder, request: Request, path: str, data: bytes) -> bytes:
    encoding = sniff(data[:4])
    if encoding is not None and encoding.mark:
        text = data[len(encoding.mark) :].decode(encoding.name, "replace")
        data = text.encode()
    # no line can match where the whole does not: most files are done with one search
    if not data or finder.column(data) is None or b"\0" in data:
        return b""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    columns: dict[int, int] = {}
    for index, line in enumerate(lines):
        column = finder.column(line)
        if column is not None:
            columns[index] = column
            if len(columns) >= request.per_file or request.mode == "files":
                break
    name = os.fsencode(request.prefix + path)
    if not columns:
        return b""
    if request.mode == "files":
        return name + b"\0"
    if request.mode == "count":
        return b"%s\0%d\n" % (name, len(columns))
    return _print(name, lines, columns, request.context)


def _print(name: bytes, lines: list[bytes], columns: dict[int, int], context: int) -> bytes:
    out: list[bytes] = []
    wanted = sorted(
        {
            near
            for index in columns
            for near in range(max(index - context, 0), min(index + context + 1, len(lines)))
        }
    )
    offset = at = 0
    for index in wanted:
        offset += sum(len(line) + 1 for line in lines[at:index])
        at = index
        line = lines[index]
        text = line if len(line) <= hits.MAX_COLUMNS else b"[Omitted long line]"
        if index in columns:
            out.append(b"%s\0%d:%d:%d:%s\n" % (name, index + 1, columns[index] + 1, offset, text))
        else:
            out.append(b"%s\0%d-%d-%s\n" % (name, index + 1, offset, text))
    return b"".join(out)
