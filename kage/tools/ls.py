"""The ls tool: what is in a folder."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import time

from kage.core.content import Text
from kage.core.sanitise import visible
from kage.core.tools import Invocation, Risk, Subject, SubjectKind, ToolResult, ToolSpec
from kage.tools import arguments, confine
from kage.tools.confine import Place
from kage.tools.described import count, description, schema, words, yes_no
from kage.tools.encoding import size

DEFAULT_ENTRIES = 1000
MAX_ENTRIES = 10_000
MAX_SCANNED = 200_000  # names taken from a folder before it counts as endless
_BATCH = 5000  # names between two chances for other tasks


class Ls:
    """Lists folders inside the roots."""

    def __init__(self, *, max_output_chars: int) -> None:
        self._limit = max_output_chars
        self.spec = ToolSpec(
            name="ls",
            title="List a folder",
            description=description("ls"),
            schema=schema(
                (),
                path=words("Folder to list, relative to the workspace or absolute.", default="."),
                hidden=yes_no("Also show names that start with a dot."),
                details=yes_no("Show size and time of change."),
                limit=count(
                    "How many entries to show at most.",
                    low=1,
                    high=MAX_ENTRIES,
                    default=DEFAULT_ENTRIES,
                ),
            ),
            risk=Risk.READ,
            subject=Subject(kind=SubjectKind.PATH, argument="path", default="."),
        )

    async def run(self, call: Invocation) -> ToolResult:
        """List the folder.

        Raises:
            ToolError: it is missing, outside the roots or cannot be read.
        """
        raw = arguments.text(call.arguments, "path", ".")
        hidden = arguments.flag(call.arguments, "hidden")
        details = arguments.flag(call.arguments, "details")
        most = arguments.number(call.arguments, "limit", DEFAULT_ENTRIES, low=1, high=MAX_ENTRIES)
        place = confine.locate(call, raw)
        status = confine.status_of(place)
        if status is None:
            raise confine.missing(call, place)
        if not stat.S_ISDIR(status.st_mode):
            with confine.folder(place.parts[:-1]) as parent:
                line = _line(parent, place.parts[-1], details=True)
            return ToolResult(content=(Text(f"{line}\n[a single file]"),), summary="1 file")
        return await self._list(place, hidden=hidden, details=details, most=most)

    async def _list(self, place: Place, *, hidden: bool, details: bool, most: int) -> ToolResult:
        descriptor = confine.open_folder(place)
        try:
            names, endless = await _names(descriptor)
            shown = sorted(name for name in names if hidden or not name.startswith("."))
            skipped = len(names) - len(shown)
            lines = [_line(descriptor, name, details=details) for name in shown[:most]]
        except OSError as error:
            raise confine.failure(error, place.shown, "listed") from error
        finally:
            os.close(descriptor)
        text, fitting = _fit(lines, self._limit - 300)
        notes: list[str] = []
        if fitting < len(shown):
            notes.append(f"[{fitting:,} of {len(shown):,} entries shown; find narrows it down]")
        if endless:
            notes.append(f"[The folder has more than {MAX_SCANNED:,} entries]")
        if skipped:
            notes.append(f"[{skipped:,} hidden]")
        if not shown:
            text = "(the folder is empty)" if not skipped else "(nothing that is not hidden)"
        plural = "y" if len(shown) == 1 else "ies"
        return ToolResult(
            content=(Text("\n".join([text, *notes])),), summary=f"{len(shown):,} entr{plural}"
        )


async def _names(descriptor: int) -> tuple[list[str], bool]:
    names: list[str] = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            names.append(entry.name)
            if len(names) >= MAX_SCANNED:
                return names, True
            if len(names) % _BATCH == 0:
                await asyncio.sleep(0)
    return names, False


def _line(descriptor: int, name: str, *, details: bool) -> str:
    """Describe one entry of an open folder."""
    shown = visible(name, single_line=True)
    try:
        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except OSError:
        return shown  # gone since it was listed
    kind = confine.describe(status)
    if kind == "a folder":
        shown += "/"
    elif kind == "a link":
        with contextlib.suppress(OSError):
            target = os.readlink(name, dir_fd=descriptor)
            shown += f" -> {visible(target, single_line=True)}"
    elif kind:
        shown += f" ({kind})"
    return f"{_details(status, kind)}  {shown}" if details else shown


def _details(status: os.stat_result, kind: str) -> str:
    amount = "-" if kind else size(status.st_size)
    try:
        changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(status.st_mtime))
    except (OverflowError, ValueError, OSError):
        changed = "-"  # a time no calendar has
    return f"{amount:>12}  {changed:<16}"


def _fit(lines: list[str], room: int) -> tuple[str, int]:
    """Give the lines that fit into ``room`` characters, and how many they are."""
    used = 0
    for index, line in enumerate(lines):
        used += len(line) + 1
        if used > room:
            return "\n".join(lines[:index]), index
    return "\n".join(lines), len(lines)
