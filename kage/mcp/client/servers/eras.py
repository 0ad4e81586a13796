"""What servers turned out to speak, by entry hash, on disk.

A cache: a file that is broken or of another shape counts as none. Several kages write it; each
reads it again under a lock and adds its own.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from kage.core import locks
from kage.core.files import reading, replace

Era = Literal["legacy", "modern"]

_VERSION = 1
_MOST = 1_000  # entries; the oldest go first
_MAX_BYTES = 1 << 20
_LOCK_WAIT = 0.2  # seconds; a verdict that is not kept costs one question
_SSE = "sse"

Notes = dict[str, dict[str, str]]  # entry hash: era, transport


class Eras:
    """Verdicts servers earned by their own answers; with no path they live as long as this kage."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._notes: Notes | None = None

    def known(self, entry: str) -> Era | None:
        """Give the era a server speaks, None without a verdict."""
        match self._read().get(entry, {}).get("era"):
            case "legacy":
                return "legacy"
            case "modern":
                return "modern"
        return None

    def remember(self, entry: str, era: Era) -> None:
        """Keep a verdict the server's own behaviour gave."""
        if self.known(entry) != era:
            self._change(entry, lambda note: {**note, "era": era})

    def forget(self, entry: str) -> None:
        """Drop a verdict about the era that turned out wrong."""
        if self.known(entry) is not None:
            self._change(entry, lambda note: {k: v for k, v in note.items() if k != "era"})

    def knows_sse(self, entry: str) -> bool:
        """Say whether an address answered only over the older HTTP transport."""
        return self._read().get(entry, {}).get("transport") == _SSE

    def remember_sse(self, entry: str) -> None:
        """Keep that it did."""
        if not self.knows_sse(entry):
            self._change(entry, lambda note: {**note, "transport": _SSE})

    def forget_sse(self, entry: str) -> None:
        """Drop that it did."""
        if self.knows_sse(entry):
            self._change(entry, lambda note: {k: v for k, v in note.items() if k != "transport"})

    def _read(self) -> Notes:
        if self._notes is None:
            self._notes = _load(self._path)
        return self._notes

    def _change(self, entry: str, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        """Apply a change to what is held and to what is on disk; the disk may fail."""
        self._notes = _with(self._read(), entry, change)
        if self._path is None:
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            lock = os.open(self._path.with_suffix(".lock"), flags, 0o600)
            try:
                locks.take(lock, seconds=_LOCK_WAIT)
                _save(self._path, _with(_load(self._path), entry, change))
            finally:
                os.close(lock)


def _with(notes: Notes, entry: str, change: Callable[[dict[str, str]], dict[str, str]]) -> Notes:
    """Give ``notes`` with one entry changed; it becomes the newest, an empty one goes."""
    changed = {key: note for key, note in notes.items() if key != entry}
    if note := change(notes.get(entry, {})):
        changed[entry] = note
    for key in list(changed)[: max(0, len(changed) - _MOST)]:
        del changed[key]
    return changed


def _load(path: Path | None) -> Notes:
    if path is None:
        return {}
    try:
        with reading(path) as file:
            data = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(data, Mapping) or data.get("version") != _VERSION:
        return {}
    entries = data.get("entries")
    if not isinstance(entries, Mapping):
        return {}
    return {
        key: {name: value for name, value in note.items() if isinstance(value, str)}
        for key, note in entries.items()
        if isinstance(note, Mapping)
    }


def _save(path: Path, notes: Notes) -> None:
    replace(path, json.dumps({"version": _VERSION, "entries": notes}).encode())
