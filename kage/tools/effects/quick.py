"""Tell without git that nothing changed in a small workspace: most calls change nothing."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

MOST = 1_000  # entries; in larger workspaces git is asked at once
_GRAIN = 50_000_000  # nanoseconds: a file that changed so shortly ago may change unseen again

_Entry = tuple[bytes, int, int, int, int, int]


@dataclass(slots=True)
class Quick:
    """Compares names, inodes, sizes, modes and times of everything, ignored files too."""

    workspace: Path
    _last: frozenset[_Entry] | None = None
    _large: bool = False

    def same(self) -> bool:
        """Say whether all is as it was the last time this was asked; False when in doubt."""
        now = None if self._large else self._taken()
        same = now is not None and now == self._last
        recent = time.time_ns() - _GRAIN
        steady = now is not None and all(entry[-1] < recent for entry in now)
        self._last = now if steady else None
        return same

    def _taken(self) -> frozenset[_Entry] | None:
        """Look at everything; None where there is too much, or not all can be seen."""
        found: set[_Entry] = set()
        waiting = [os.fsencode(self.workspace)]
        try:
            while waiting:
                folder = waiting.pop()
                found.add(_entry(folder, os.lstat(folder)))
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            if entry.name != b".git":
                                waiting.append(entry.path)
                        else:
                            found.add(_entry(entry.path, entry.stat(follow_symlinks=False)))
                        if len(found) + len(waiting) > MOST:
                            self._large = True  # counting it each time would cost more than git
                            return None
        except OSError:
            return None
        return frozenset(found)


def _entry(path: bytes, status: os.stat_result) -> _Entry:
    return (
        path,
        status.st_ino,
        status.st_size,
        status.st_mode,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
