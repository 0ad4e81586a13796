"""Know what git would ignore, from the ignore files found on the way down a tree."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kage.core.errors import ToolError
from kage.tools import globs

FILES = (".gitignore", ".ignore", ".rgignore")  # later ones count more, as in ripgrep
MAX_FILE = 1 << 20  # bytes of one ignore file that are read
MAX_LINES = 5000


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring patterns of one file that say the same: one test for all of them."""

    ignores: bool
    folders_only: bool
    by_name: bool
    test: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Patterns:
    """The patterns of the ignore files of one folder; ``depth`` is how deep that folder is.

    Runs stand last first, since the last pattern that matches decides.
    """

    depth: int
    runs: tuple[Run, ...]

    def verdict(self, name: str, below: str, *, folder: bool) -> bool | None:
        """Say whether an entry is ignored, kept, or not spoken of (None).

        ``below`` is its path relative to the folder of the ignore file.
        """
        for run in self.runs:
            if run.folders_only and not folder:
                continue
            if run.test.fullmatch(name if run.by_name else below):
                return run.ignores
        return None


def ignored(chain: Sequence[Patterns], path: Sequence[str], *, folder: bool) -> bool:
    """Say whether the entry at ``path`` (names from the top) is ignored; deeper files first."""
    for patterns in reversed(chain):
        verdict = patterns.verdict(path[-1], "/".join(path[patterns.depth :]), folder=folder)
        if verdict is not None:
            return verdict
    return False


def parse(texts: Iterable[str], *, depth: int) -> Patterns | None:
    """Compile the ignore files of one folder, weakest first; None when they say nothing.

    A line that is no usable pattern is skipped, as git does.
    """
    runs: list[Run] = []
    pending: list[str] = []
    current: tuple[bool, bool, bool] | None = None
    for text in texts:
        for line in text[:MAX_FILE].splitlines()[:MAX_LINES]:
            parsed = _parse_line(line)
            if parsed is None:
                continue
            kind, source = parsed
            if current is not None and kind != current:
                runs.append(_run(current, pending))
                pending = []
            current = kind
            pending.append(source)
    if current is None:
        return None
    runs.append(_run(current, pending))
    return Patterns(depth=depth, runs=tuple(reversed(runs)))


def _run(kind: tuple[bool, bool, bool], sources: Sequence[str]) -> Run:
    ignores, folders_only, by_name = kind
    test = re.compile("|".join(f"(?:{source})" for source in sources), re.DOTALL)
    return Run(ignores, folders_only, by_name, test)


def _parse_line(line: str) -> tuple[tuple[bool, bool, bool], str] | None:
    line = _trim(line)
    if not line or line.startswith("#") or len(line) > globs.MAX_PATTERN:
        return None
    ignores = not line.startswith("!")
    if not ignores:
        line = line[1:]
    folders_only = line.endswith("/")
    pattern = line.rstrip("/") if folders_only else line
    by_name = "/" not in pattern
    if not pattern:
        return None
    try:
        source = globs.segment_regex(pattern) if by_name else globs.path_regex(pattern)
        re.compile(source)
    except (ToolError, re.error, OverflowError, RecursionError):
        return None
    return (ignores, folders_only, by_name), source


def _trim(line: str) -> str:
    """Take off spaces at the end, unless the last one is escaped."""
    line = line.rstrip("\r\n")
    stripped = line.rstrip(" ")
    if stripped.endswith("\\") and len(stripped) < len(line):
        return stripped + " "
    return stripped


def read(folder: int, names: Iterable[str]) -> list[str]:
    """Read those ignore files of a folder (an open descriptor) that are regular files."""
    present = set(names)
    texts: list[str] = []
    for name in FILES:
        if name in present and (text := read_one(folder, name)) is not None:
            texts.append(text)
    return texts


def read_one(folder: int, name: str) -> str | None:
    """Read one ignore file; None when it is none that can be read."""
    from kage.tools import confine

    try:
        descriptor, _ = confine.open_at(folder, name)
    except OSError:
        return None
    try:
        return os.pread(descriptor, MAX_FILE, 0).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)
