"""Find files by glob: through ripgrep's list, or a walk of our own; confined either way."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kage.core.content import Text
from kage.core.errors import ToolError
from kage.core.sanitise import visible
from kage.core.tools import Invocation, ToolResult
from kage.tools import arguments, confine, globs, ripgrep
from kage.tools.confine import Place
from kage.tools.limits import FIND_DEFAULT, FIND_KINDS, FIND_MOST
from kage.tools.ripgrep import Ripgrep
from kage.tools.walk import Walk

MAX_LISTED = 64 << 20  # bytes of names taken from ripgrep; about a million files
DEADLINE = 20.0  # seconds of a walk without ripgrep


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    place: Place
    root: Path
    matches: Callable[[str], bool]
    kind: str
    hidden: bool
    ignored: bool
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """Paths relative to the searched folder, and what to tell about them."""

    paths: list[str]
    total: int
    notes: tuple[str, ...] = ()


async def run(call: Invocation, *, search: Ripgrep | None, limit: int) -> ToolResult:
    """Find the files; ``limit`` is how many characters the result may have.

    Raises:
        ToolError: the folder is missing or outside the roots, or the glob is too complex.
    """
    wanted = _wanted(call)
    if search is not None and wanted.kind == "file":
        found = await _listed(search, wanted)
    else:
        found = await _walked(wanted)
    return _result(call, wanted, found, limit)


def _result(call: Invocation, wanted: _Wanted, found: _Names, limit: int) -> ToolResult:
    workspace = Path(os.path.realpath(call.workspace))
    base = confine.shown_path(wanted.place.path, workspace)
    prefix = "" if base == "." else f"{base}/"
    lines: list[str] = []
    room = limit - 400
    for path in found.paths:
        line = prefix + visible(path, single_line=True)
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    notes = list(found.notes)
    if len(lines) < found.total:
        notes.append(f"[{len(lines):,} of {found.total:,} shown; narrow the pattern or path]")
    if not lines:
        lines.append("(nothing found)")
    plural = "" if found.total == 1 else "s"
    return ToolResult(
        content=(Text("\n".join([*lines, *notes])),),
        summary=f"{found.total:,} result{plural}",
    )


def _wanted(call: Invocation) -> _Wanted:
    pattern = arguments.text(call.arguments, "pattern")
    if not pattern or "\0" in pattern:
        raise ToolError("The pattern is empty or holds a NUL character", fix="Use * for all files")
    place = folder_to_search(call, arguments.text(call.arguments, "path", "."))
    return _Wanted(
        place=place,
        root=searched_root(call, place),
        matches=globs.matcher(pattern),
        kind=arguments.choice(call.arguments, "type", FIND_KINDS),
        hidden=arguments.flag(call.arguments, "hidden"),
        ignored=arguments.flag(call.arguments, "ignored"),
        most=arguments.number(call.arguments, "limit", FIND_DEFAULT, low=1, high=FIND_MOST),
    )


def folder_to_search(call: Invocation, raw: str) -> Place:
    """Locate a folder that is there.

    Raises:
        ToolError: it is missing, no folder, or outside the roots.
    """
    place = confine.locate(call, raw)
    status = confine.status_of(place)
    if status is None:
        raise confine.missing(call, place)
    if not stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{place.shown} is not a folder", fix="Name the folder to search")
    return place


def searched_root(call: Invocation, place: Place) -> Path:
    """Give the topmost folder whose ignore files count: the workspace, or the place itself."""
    workspace = Path(os.path.realpath(call.workspace))
    return workspace if workspace in (place.path, *place.path.parents) else place.path


async def _listed(search: Ripgrep, wanted: _Wanted) -> _Names:
    """Let ripgrep list all files, keep those that match, and show those that are really inside."""
    options = ripgrep.scope(wanted.place, wanted.root, hidden=wanted.hidden, ignored=wanted.ignored)
    target = ripgrep.target(wanted.place, wanted.root)
    output = await search.run(
        ["--files", "--null", *options, "--", target], root=wanted.root, most=MAX_LISTED
    )
    start = len(target) if target.endswith("/") else len(target) + 1
    names = os.fsdecode(output.data).split("\0")
    if output.cut:
        names.pop()  # the last one may be half
    matching = sorted(name[start:] for name in names if name and wanted.matches(name[start:]))
    present = await asyncio.to_thread(inside, wanted.place, matching[: wanted.most])
    notes = ("[There are more files than could be listed]",) if output.cut else ()
    gone = min(len(matching), wanted.most) - len(present)
    return _Names(paths=present, total=len(matching) - gone, notes=notes)


def inside(place: Place, paths: list[str]) -> list[str]:
    """Keep those of ``paths`` below ``place`` that are regular files, seen without following links.

    ripgrep goes by path: a folder swapped for a link while it runs leads it outside.
    """
    kept: list[str] = []
    try:
        with confine.folder(place.parts) as top:
            for path in paths:
                *folders, name = path.split("/")
                try:
                    with confine.folder(folders, start=top) as held:
                        if not confine.kind_of(held, name):
                            kept.append(path)
                except (OSError, ValueError):
                    continue
    except OSError:
        return []
    return kept


async def _walked(wanted: _Wanted) -> _Names:
    stop = threading.Event()
    try:
        return await asyncio.to_thread(_walk, wanted, stop)
    finally:
        stop.set()


def _walk(wanted: _Wanted, stop: threading.Event) -> _Names:
    end = time.monotonic() + DEADLINE
    walk = Walk(
        top=wanted.root.parts[1:],
        start=wanted.place.parts,
        hidden=wanted.hidden,
        ignored=wanted.ignored,
        stop=lambda: stop.is_set() or time.monotonic() > end,
    )
    paths: list[str] = []
    total = 0
    try:
        for entry in walk:
            fits = entry.is_folder if wanted.kind == "folder" else entry.is_file
            if not (fits or (wanted.kind == "any")) or not wanted.matches(entry.path):
                continue
            total += 1
            if len(paths) < wanted.most:
                paths.append(f"{entry.path}/" if entry.is_folder else entry.path)
    except OSError as error:
        raise confine.failure(error, wanted.place.shown, "searched") from error
    notes: list[str] = []
    if time.monotonic() > end:
        notes.append(f"[Stopped after {DEADLINE:.0f} seconds; search a smaller folder]")
    if walk.too_deep:
        notes.append("[Folders nested very deep were left out]")
    return _Names(paths=paths, total=total, notes=tuple(notes))
