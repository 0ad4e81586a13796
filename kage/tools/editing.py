"""Work out what an edit makes of a file, without writing it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from kage.core.errors import ToolError
from kage.core.tools import Invocation
from kage.tools import arguments, confine
from kage.tools.confine import Place
from kage.tools.encoding import Encoding, size, sniff
from kage.tools.matching import apply, explain_miss

MAX_SIZE = 8 << 20  # bytes; several copies are held, so larger files are edited with a program
MAX_RESULT = 2 * MAX_SIZE  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One edit, worked out but not yet written."""

    place: Place
    status: os.stat_result
    old: str
    new: str
    data: bytes
    places: int


def work_out(call: Invocation) -> Change:
    """Read the file and make the replacement in memory.

    Raises:
        ToolError: the text is not there, there more than once, or the file cannot be edited.
    """
    raw = arguments.text(call.arguments, "path")
    old = arguments.text(call.arguments, "old_string")
    new = arguments.text(call.arguments, "new_string")
    every = arguments.flag(call.arguments, "replace_all")
    if not old:
        raise ToolError(
            "The old_string is empty, so it names no place", fix="Use write for a new file"
        )
    if old == new:
        raise ToolError("The old_string and the new_string are the same; nothing would change")
    place = confine.locate(call, raw)
    data, status = _load(call, place)
    text, encoding = _decode(place, data)
    if every and (length := len(text) + text.count(old) * (len(new) - len(old))) > MAX_RESULT:
        raise ToolError(
            f"{place.shown} would grow to {size(length)}", why=f"the limit is {size(MAX_RESULT)}"
        )
    result = apply(text, old, new, every=every)
    if result.places == 0:
        raise ToolError(f"The old_string is not in {place.shown}", fix=explain_miss(text, old))
    if result.places > 1 and not every:
        lines = ", ".join(map(str, result.lines)) + (" …" if result.places > 10 else "")
        raise ToolError(
            f"The old_string stands in {place.shown} {result.places} times (lines {lines})",
            fix="Add lines around it until it is unique, or set replace_all",
        )
    try:
        written = encoding.mark + result.text.encode(encoding.name)
    except UnicodeEncodeError as error:
        raise ToolError(
            "The new_string holds half a surrogate pair, which no file can hold"
        ) from error
    return Change(
        place=place, status=status, old=text, new=result.text, data=written, places=result.places
    )


def _load(call: Invocation, place: Place) -> tuple[bytes, os.stat_result]:
    descriptor, status = confine.open_file(call, place)
    try:
        if status.st_size > MAX_SIZE:
            raise ToolError(
                f"{place.shown} is too large to be edited ({size(status.st_size)})",
                why=f"the limit is {size(MAX_SIZE)}",
                fix="Change it with a program such as sed",
            )
        data = bytearray()
        while len(data) <= MAX_SIZE and (chunk := os.pread(descriptor, 1 << 20, len(data))):
            data += chunk
    except OSError as error:
        raise confine.failure(error, place.shown, "read") from error
    finally:
        os.close(descriptor)
    return bytes(data), status


def _decode(place: Place, data: bytes) -> tuple[str, Encoding]:
    """Give the text, or refuse where writing it back would change other bytes."""
    encoding = sniff(data)
    if encoding is None:
        raise ToolError(f"{place.shown} is a binary file", fix="Only text files can be edited")
    try:
        return data[len(encoding.mark) :].decode(encoding.name), encoding
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ToolError(
            f"{place.shown} is not valid {encoding.name.upper()} (line {line}),"
            " so an edit could change other bytes",
            fix="Convert it first, for example with iconv",
        ) from error
