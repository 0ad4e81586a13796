"""The write tool: create a file or replace all of it."""

from __future__ import annotations

import os

from kage.core.content import Text
from kage.core.errors import ToolError
from kage.core.tools import Invocation, Risk, Subject, SubjectKind, ToolResult, ToolSpec
from kage.tools import arguments, confine
from kage.tools.confine import Place
from kage.tools.described import description, schema, words
from kage.tools.encoding import size, sniff

MAX_DIFF = 2 << 20  # bytes of an old file that are read for the diff


class Write:
    """Writes whole files inside the roots."""

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="write",
            title="Write a file",
            description=description("write"),
            schema=schema(
                ("path", "content"),
                path=words("File to write, relative to the workspace or absolute."),
                content=words("The whole new content."),
            ),
            risk=Risk.WRITE,
            subject=Subject(kind=SubjectKind.PATH, argument="path"),
        )

    async def run(self, call: Invocation) -> ToolResult:
        """Write the file.

        Raises:
            ToolError: the place is outside the roots, special, or cannot be written.
        """
        from kage.tools import diff, replace  # with the first call: hosts start faster

        place, content, data = _asked(call)
        old = _old(call, place)
        new = replace.put(place, data, keeper=call.keeper)
        lines = content.count("\n") + (not content.endswith("\n") and content != "")
        amount = f"{lines} line{'s' if lines != 1 else ''}, {size(len(data))}"
        done = "Created" if new else "Replaced"
        change = diff.unified(old, content, name=place.shown) if old is not None else ""
        return ToolResult(
            content=(Text(f"{done} {place.shown} ({amount})"),),
            summary=f"{done.lower()}, {amount}",
            diff=change,
        )

    async def preview(self, call: Invocation) -> str:
        """Give the diff the call would make, "" when it would fail or change nothing."""
        from kage.tools import diff

        try:
            place, content, _ = _asked(call)
            old = _old(call, place)
        except ToolError:
            return ""  # running it tells what is wrong
        return diff.unified(old, content, name=place.shown) if old is not None else ""


def _asked(call: Invocation) -> tuple[Place, str, bytes]:
    raw = arguments.text(call.arguments, "path")
    content = arguments.text(call.arguments, "content")
    try:
        data = content.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            "The content holds half a surrogate pair, which no file can hold"
        ) from error
    if raw.endswith("/"):
        raise ToolError("The path ends in '/', so it names a folder", fix="Name a file")
    return confine.locate(call, raw), content, data


def _old(call: Invocation, place: Place) -> str | None:
    """Give the text there is now: "" for no file, None where a diff makes no sense."""
    status = confine.status_of(place)
    if status is None:
        return ""
    if confine.describe(status):
        return None
    descriptor, status = confine.open_file(call, place)
    try:
        if status.st_size > MAX_DIFF:
            return None
        data = os.pread(descriptor, MAX_DIFF, 0)
    finally:
        os.close(descriptor)
    if sniff(data) is None:
        return None
    return data.decode("utf-8", "replace")
