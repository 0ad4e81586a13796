"""The read tool: a range of lines of a text file, or an image."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING

from kage.core.content import Image, Text
from kage.core.errors import ToolError
from kage.core.tools import Invocation, Risk, Subject, SubjectKind, ToolResult, ToolSpec
from kage.tools import arguments, confine
from kage.tools.confine import Place
from kage.tools.described import count, description, schema, words
from kage.tools.encoding import IMAGES, SNIFF, Encoding, media_type, size, sniff

if TYPE_CHECKING:
    from kage.tools import lines

DEFAULT_LINES = 2000
MAX_WIDTH = 2000  # bytes of one line among others
MAX_IMAGE = 3_750_000  # bytes; 5 MB as base64, what model services take
_NOTICES = 600  # characters kept free for the notes under the text


class Read:
    """Shows numbered lines of a file inside the roots."""

    def __init__(self, *, max_output_chars: int) -> None:
        self._limit = max_output_chars
        self.spec = ToolSpec(
            name="read",
            title="Read a file",
            description=description("read"),
            schema=schema(
                ("path",),
                path=words("File to read, relative to the workspace or absolute."),
                offset=count("First line to show, counted from 1.", low=1, default=1),
                limit=count("How many lines to show at most.", low=1, default=DEFAULT_LINES),
                start=count("Byte of the first line to start at.", low=0, default=0),
            ),
            risk=Risk.READ,
            subject=Subject(kind=SubjectKind.PATH, argument="path"),
        )

    async def run(self, call: Invocation) -> ToolResult:
        """Read the lines asked for.

        Raises:
            ToolError: the file is missing, special, binary or outside the roots.
        """
        raw = arguments.text(call.arguments, "path")
        first = arguments.number(call.arguments, "offset", 1, low=1, high=1 << 53)
        most = arguments.number(call.arguments, "limit", DEFAULT_LINES, low=1, high=1 << 53)
        start = arguments.number(call.arguments, "start", 0, low=0, high=1 << 53)
        place = confine.locate(call, raw, reading=True)
        descriptor, status = confine.open_file(call, place)
        try:
            head = os.pread(descriptor, SNIFF, 0)
            kind = media_type(head)
            if kind in IMAGES:
                return _image(descriptor, place, kind, status.st_size)
            encoding = sniff(head)
            if encoding is None:
                raise ToolError(
                    f"{place.shown} is a binary file"
                    f" ({kind or 'unknown type'}, {size(status.st_size)})",
                    fix="Only text and images can be shown",
                )
            found = await self._pick(descriptor, encoding, first, most, start)
        except OSError as error:
            raise confine.failure(error, place.shown, "read") from error
        finally:
            os.close(descriptor)
        return _result(found, place, encoding, status.st_size, start)

    async def _pick(
        self, descriptor: int, encoding: Encoding, first: int, most: int, start: int
    ) -> lines.Range:
        from kage.tools import lines  # with the first call: hosts start faster

        room = max(self._limit - _NOTICES, 200)
        # a line read alone may fill the whole answer, so that long lines can be seen at all
        width = min(MAX_WIDTH, room // 4) if most > 1 else room
        wanted = lines.Wanted(
            first=first,
            count=most,
            room=room - (width if most > 1 else 0),
            width=width,
            start=start,
        )
        return await lines.pick(descriptor, encoding, wanted)


def _image(descriptor: int, place: Place, kind: str, length: int) -> ToolResult:
    if length > MAX_IMAGE:
        raise ToolError(
            f"{place.shown} is an image of {size(length)}, too large to be shown",
            why=f"the limit is {size(MAX_IMAGE)}",
            fix="Make a smaller copy of it first",
        )
    data = os.pread(descriptor, MAX_IMAGE, 0)
    note = f"{place.shown}: {kind}, {size(len(data))}"
    return ToolResult(
        content=(
            Text(note),
            Image(data=base64.b64encode(data).decode(), mime=kind, path=str(place.path)),
        ),
        summary=f"{kind}, {size(len(data))}",
    )


def _result(
    found: lines.Range, place: Place, encoding: Encoding, length: int, start: int
) -> ToolResult:
    if not found.lines:
        if found.first == 1:
            return ToolResult(content=(Text(f"({place.shown} is empty)"),), summary="empty")
        plural = "line" if found.total == 1 else "lines"
        raise ToolError(
            f"{place.shown} has only {found.total} {plural}",
            why=f"line {found.first} was asked for",
        )
    out: list[str] = []
    broken = False
    for number, line in enumerate(found.lines, found.first):
        begun = start > 0 and number == found.first
        text, bad = _decode(line, cut=number in found.clipped, begun=begun)
        broken = broken or bad
        out.append(f"{number:6}\t{text}")
    last = found.first + len(found.lines) - 1
    notes = [*_cuts(found, start), *_notes(found, encoding, length, last, broken=broken)]
    if notes:
        out.append("\n" + "\n".join(notes))
    shown = f"{len(found.lines)} line{'s' if len(found.lines) != 1 else ''}"
    return ToolResult(content=(Text("\n".join(out)),), summary=shown)


def _decode(line: bytes, *, cut: bool, begun: bool = False) -> tuple[str, bool]:
    """Give a line as text, and whether it held bytes that are no text."""
    line = _whole(line) if cut else line.removesuffix(b"\r")
    for _ in range(3 if begun else 0):  # the end of a character cut in two
        line = line[1:] if line and line[0] & 0xC0 == 0x80 else line
    try:
        text, bad = line.decode(), False
    except UnicodeDecodeError:
        text, bad = line.decode("utf-8", "replace"), True
    if "\0" in text:
        text, bad = text.replace("\0", "\ufffd"), True
    return (f"{text}…" if cut else text), bad


def _whole(line: bytes) -> bytes:
    """Take the beginning of a character off the end of a line that was cut."""
    for back in range(1, min(4, len(line) + 1)):
        lead = line[-back]
        if lead & 0xC0 != 0x80:  # no continuation
            needs = 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1
            return line[:-back] if needs > back else line
    return line


def _cuts(found: lines.Range, start: int) -> list[str]:
    """Say which lines were cut, and how to see the rest of them."""
    if not found.clipped:
        return []
    if len(found.lines) == 1:
        number, following = found.first, start + len(_whole(found.lines[0]))
        return [f"[Line {number} is cut. Read on with offset={number} limit=1 start={following}]"]
    some = ", ".join(map(str, found.clipped[:5])) + (" …" if len(found.clipped) > 5 else "")
    return [f"[Too long and cut: line {some}. Read one alone with limit=1 for more]"]


def _notes(
    found: lines.Range, encoding: Encoding, length: int, last: int, *, broken: bool
) -> list[str]:
    notes: list[str] = []
    if found.more:
        notes.append(
            f"[Lines {found.first} to {last} of a file of {size(length)}; it goes on."
            f" Read on with offset={last + 1}]"
        )
    if encoding.name != "utf-8":
        notes.append(f"[The file is {encoding.name}]")
    if broken:
        notes.append("[Bytes that are no UTF-8 are shown as \ufffd]")
    return notes
