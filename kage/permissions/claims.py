"""Tools that claim to be read-only and changed files: remembered for good, by their definition."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

from kage.core.files import content, replace
from kage.core.gate import Asker, Question, Reply
from kage.core.locks import take
from kage.core.tools import ServerTool, ToolSpec

MARK = "claims read-only, changed files"
_MOST = 1_000  # marks; the oldest go first
_KEYS = ("server", "origin", "tool", "pin", "at", "files")


class Marking:
    """Asks like another asker, and says in the question what is known against a tool.

    Implements ``core.gate.Asker``.
    """

    def __init__(self, asker: Asker, about: Callable[[ToolSpec], str]) -> None:
        self._asker = asker
        self._about = about

    async def ask(self, question: Question) -> Reply:
        """See ``Asker``."""
        if mark := self._about(question.request.tool):
            question = replaced(question, warnings=(*question.warnings, mark))
        return await self._asker.ask(question)


class BrokenClaims:
    """The file ``<data>/claims.json``; kages merge what they add under a lock.

    Args:
        path: The file.
        on_trouble: Told in words when it cannot be written; the mark holds while kage runs.
    """

    def __init__(self, path: Path, *, on_trouble: Callable[[str], None]) -> None:
        self._path = path
        self._on_trouble = on_trouble
        self._marks: dict[tuple[str, ...], dict[str, Any]] = {}
        self._stamp: tuple[int, int] | None = None

    def broke(self, tool: ServerTool, files: tuple[str, ...]) -> None:
        """Remember that a tool changed files; may be called from any thread."""
        mark = {
            "server": tool.server,
            "origin": tool.origin,
            "tool": tool.original,
            "pin": tool.pin,
            "at": round(time.time(), 3),
            "files": list(files),
        }
        self._marks[_identity(mark)] = mark
        try:
            self._save()
        except OSError as error:
            why = error.strerror or str(error)
            self._on_trouble(f"The mark of {tool.server} · {tool.original} is not saved ({why})")

    def about(self, spec: ToolSpec) -> str:
        """Say what is known against the word of a tool, "" for nothing."""
        tool = spec.server
        if tool is None:
            return ""
        self._refresh()
        mark = self._marks.get((tool.server, tool.origin, tool.original, tool.pin))
        if mark is None:
            return ""
        when = time.strftime("%Y-%m-%d", time.localtime(mark["at"]))
        names = ", ".join(mark["files"][:3])
        return f"{MARK}: {names} ({when})" if names else f"{MARK} ({when})"

    def _refresh(self) -> None:
        """Read the file again when another kage wrote it."""
        try:
            status = os.stat(self._path)
        except OSError:
            return
        stamp = status.st_ino, status.st_mtime_ns
        if stamp != self._stamp:
            self._marks |= _read(self._path)
            self._stamp = stamp

    def _save(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        lock = os.open(self._path.with_suffix(".lock"), flags, 0o600)
        try:
            take(lock)
            self._marks = _read(self._path) | self._marks
            newest = sorted(self._marks.values(), key=lambda mark: float(mark["at"]))[-_MOST:]
            replace(self._path, json.dumps(newest, indent=1).encode() + b"\n")
        finally:
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)


def _identity(mark: dict[str, Any]) -> tuple[str, ...]:
    return mark["server"], mark["origin"], mark["tool"], mark["pin"]


def _read(path: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """Read the sound marks of a file; a broken one holds none."""
    try:
        data = json.loads(content(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return {_identity(mark): mark for mark in data if _sound(mark)} if _is_list(data) else {}


def _is_list(data: object) -> bool:
    return isinstance(data, list)


def _sound(mark: object) -> bool:
    if not isinstance(mark, dict) or not set(_KEYS) <= mark.keys():
        return False
    words = all(isinstance(mark[key], str) for key in _KEYS[:4])
    at, files = mark["at"], mark["files"]
    timed = isinstance(at, int | float) and not isinstance(at, bool) and 0 <= at < 1e11
    return words and timed and _is_list(files) and all(isinstance(name, str) for name in files)
