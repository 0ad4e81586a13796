"""Search file contents: through ripgrep, or in Python in a process that can be ended."""

from __future__ import annotations

import asyncio
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from kage.core.content import Text
from kage.core.errors import ToolError
from kage.core.processes import Spawner
from kage.core.sanitise import visible
from kage.core.tools import Invocation, ToolResult
from kage.tools import arguments, confine, globs, hits, regexes, ripgrep, workers
from kage.tools.confine import Place
from kage.tools.finding import inside, searched_root
from kage.tools.limits import GREP_CONTEXT, GREP_DEFAULT, GREP_MODES, GREP_MOST
from kage.tools.ripgrep import Output, Ripgrep
from kage.tools.searching import Request

MAX_OUTPUT = 2 << 20  # bytes taken from a search; far more than is ever shown
DEADLINE = 20.0  # seconds of a search without ripgrep; a bad pattern can take for ever


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    place: Place  # the folder that is searched
    only: str  # a single file in it, or ""
    root: Path
    shown: str  # what stands in front of a path in the result
    pattern: str
    literal: bool
    ignore_case: bool
    glob: str
    hidden: bool
    ignored: bool
    mode: str
    context: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    lines: list[str]
    summary: str
    notes: list[str]


async def run(
    call: Invocation, *, search: Ripgrep | None, spawner: Spawner, limit: int
) -> ToolResult:
    """Search; ``limit`` is how many characters the result may have.

    Raises:
        ToolError: the pattern is bad, the path is missing or outside, or it took too long.
    """
    wanted = _wanted(call)
    target = ripgrep.target(wanted.place, wanted.root)
    prefix = target if target.endswith("/") else f"{target}/"
    if search is not None:
        output = await _with_ripgrep(search, wanted, target)
    else:
        output = await _without(spawner, wanted, prefix)
    report = await asyncio.to_thread(_report, wanted, output, len(prefix), limit)
    text = "\n".join([*report.lines, *report.notes])
    return ToolResult(content=(Text(text or "(no matches)"),), summary=report.summary)


async def _without(spawner: Spawner, wanted: _Wanted, prefix: str) -> Output:
    regexes.portable(wanted.pattern, literal=wanted.literal, ignore_case=wanted.ignore_case)
    request = Request(
        top=list(wanted.root.parts[1:]),
        start=list(wanted.place.parts),
        only=wanted.only,
        prefix=prefix,
        pattern=wanted.pattern,
        literal=wanted.literal,
        ignore_case=wanted.ignore_case,
        glob=wanted.glob,
        hidden=wanted.hidden,
        ignored=wanted.ignored,
        mode=wanted.mode,
        context=wanted.context,
        per_file=wanted.most + 1,
        budget=MAX_OUTPUT,
    )
    try:
        data, cut = await workers.run(
            spawner,
            "kage.tools.searching",
            request.dump(),
            timeout=DEADLINE,
            most=16 * MAX_OUTPUT,
        )
    except TimeoutError:
        raise ToolError(
            f"The search took longer than {DEADLINE:.0f} seconds and was ended",
            fix="Use a simpler pattern (no repeats within repeats) or a smaller folder",
        ) from None
    return Output(data=data, cut=cut)


def _wanted(call: Invocation) -> _Wanted:
    pattern = arguments.text(call.arguments, "pattern")
    regexes.check(pattern)
    place = confine.locate(call, arguments.text(call.arguments, "path", "."), reading=True)
    status = confine.status_of(place)
    if status is None:
        raise confine.missing(call, place)
    only = ""
    if not stat.S_ISDIR(status.st_mode):
        if kind := confine.describe(status):
            raise confine.special(place.shown, kind)
        only = place.path.name
        place = Place(path=place.path.parent, shown=place.shown)
    workspace = Path(os.path.realpath(call.workspace))
    base = confine.shown_path(place.path, workspace)
    glob = arguments.text(call.arguments, "glob", "")
    if glob:
        globs.matcher(glob)  # says what is wrong before anything is started
    return _Wanted(
        place=place,
        only=only,
        root=searched_root(call, place),
        shown="" if base == "." else f"{base}/",
        pattern=pattern,
        literal=arguments.flag(call.arguments, "literal"),
        ignore_case=arguments.flag(call.arguments, "ignore_case"),
        glob="" if only else glob,
        hidden=arguments.flag(call.arguments, "hidden"),
        ignored=arguments.flag(call.arguments, "ignored"),
        mode=arguments.choice(call.arguments, "mode", GREP_MODES),
        context=arguments.number(call.arguments, "context", 0, low=0, high=GREP_CONTEXT),
        most=arguments.number(call.arguments, "limit", GREP_DEFAULT, low=1, high=GREP_MOST),
    )


async def _with_ripgrep(search: Ripgrep, wanted: _Wanted, target: str) -> Output:
    options = ripgrep.scope(wanted.place, wanted.root, hidden=wanted.hidden, ignored=wanted.ignored)
    options += ["--null", "--with-filename"]
    if wanted.mode == "files":
        options.append("--files-with-matches")
    elif wanted.mode == "count":
        options.append("--count")
    else:
        options += ["--no-heading", "--line-number", "--column", "--byte-offset"]
        options += [f"--max-columns={hits.MAX_COLUMNS}", f"--max-count={wanted.most + 1}"]
        options.append(f"--context={wanted.context}")
    if wanted.literal:
        options.append("--fixed-strings")
    if wanted.ignore_case:
        options.append("--ignore-case")
    if kind := _name_part(wanted.glob):
        # a --glob would let in what git ignores; a type does not
        options += [f"--type-add=kage:{kind}", "--type=kage"]
    where = f"{target.rstrip('/')}/{wanted.only}" if wanted.only else target
    return await search.run(
        [*options, f"--regexp={wanted.pattern}", "--", where], root=wanted.root, most=MAX_OUTPUT
    )


def _name_part(glob: str) -> str:
    """Give the part of a glob ripgrep can test names with; the rest is tested afterwards."""
    name = glob.rpartition("/")[2]
    usable = "**" not in name and not set(name) & set(":{}[]\\,") and glob.count("{") == 0
    return name if usable else ""


def _report(wanted: _Wanted, output: Output, strip: int, limit: int) -> _Report:
    data, cut = output.data, output.cut
    fits = globs.matcher(wanted.glob) if wanted.glob else (lambda path: True)
    room = limit - 500
    notes = ["[There were more matches than could be collected]"] if cut else []
    if output.small_only:
        notes.append("[Large files were left out: their lines are too long to search]")
    if wanted.mode == "content":
        files = [file for file in hits.parse(data, strip=strip, whole=not cut) if fits(file.path)]
        lines, shown, total, cut_short = _content(wanted, files, room)
        summary = f"{total:,} match{'es' if total != 1 else ''}"
        if cut_short:
            notes.append(f"[{shown:,} matches shown, there are more; narrow the search]")
            summary = f"{shown:,}+ matches"
        return _Report(lines=lines, summary=summary, notes=notes)
    rows = _rows(wanted, data, strip)
    rows = [row for row in rows if fits(row[0])]
    present = set(inside(wanted.place, [path for path, _ in rows[: wanted.most]]))
    lines = [
        f"{wanted.shown}{visible(path, single_line=True)}{extra}"
        for path, extra in rows[: wanted.most]
        if path in present
    ]
    while lines and sum(map(len, lines)) + len(lines) > room:
        lines = lines[: len(lines) * 3 // 4]
    if len(rows) > len(lines) and len(lines) >= 1:
        notes.append(f"[{len(lines):,} of {len(rows):,} files shown; narrow the search]")
    plural = "" if len(rows) == 1 else "s"
    return _Report(lines=lines, summary=f"{len(rows):,} file{plural}", notes=notes)


def _rows(wanted: _Wanted, data: bytes, strip: int) -> list[tuple[str, str]]:
    if wanted.mode == "files":
        return [(path, "") for path in hits.parse_names(data, strip=strip)]
    return [(path, f":{number}") for path, number in hits.parse_counts(data, strip=strip)]


def _content(
    wanted: _Wanted, files: list[hits.File], room: int
) -> tuple[list[str], int, int, bool]:
    """Give lines to show, matches shown, matches found, and whether some had to be left out."""
    total = sum(1 for file in files for line in file.lines if line.column)
    out: list[str] = []
    shown = 0
    previous: tuple[str, int] | None = None
    for file, lines in hits.confirm(wanted.place, files):
        name = wanted.shown + visible(file.path, single_line=True)
        for line, text in lines:
            if line.column:
                if shown >= wanted.most:
                    return out, shown, total, True
                shown += 1
            if wanted.context and previous and previous != (file.path, line.number - 1):
                out.append("--")
            previous = (file.path, line.number)
            mark = ":" if line.column else "-"
            out.append(f"{name}{mark}{line.number}{mark}{text}")
            room -= len(out[-1]) + 1
            if room < 0:
                out.pop()
                return out, shown - bool(line.column), total, True
    return out, shown, shown, False
