"""Look at a workspace without git: names, sizes and times; no bytes are kept."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kage.core.undo import ABSENT
from kage.tools import restore
from kage.tools.effects.looking import Before, NotSeen
from kage.tools.walk import Walk

MAX_WALKED = 50_000  # files


@dataclass(slots=True, kw_only=True)
class PlainEye:
    """Implements ``Eye``; can say what changed, and undo only what was added."""

    workspace: Path
    _seen: dict[bytes, os.stat_result] | None = field(default=None)
    _stopped: bool = False

    def refresh(self, *, seconds: float) -> Mapping[bytes, Before]:
        """See ``Eye``."""
        was, self._seen = self._seen, None
        now = self._walked(time.monotonic() + seconds)
        self._seen = now
        if was is None:
            return {}
        found: dict[bytes, Before] = {}
        for path, status in now.items():
            old = was.get(path)
            if old is None:
                found[path] = Before(state=ABSENT)
            elif _key(old) != _key(status):
                found[path] = Before(state=restore.by_status(old))
        for path in was.keys() - now.keys():
            found[path] = Before(state=restore.by_status(was[path]))
        return found

    def former(self, oids: tuple[str, ...]) -> Mapping[str, bytes]:
        """See ``Eye``."""
        return {}

    def stop(self) -> None:
        """See ``Eye``."""
        self._stopped = True

    def close(self) -> None:
        """See ``Eye``."""
        self._seen = None

    def _walked(self, end: float) -> dict[bytes, os.stat_result]:
        start = Path(os.path.realpath(self.workspace)).parts[1:]
        late = False

        def stop() -> bool:
            nonlocal late
            late = late or self._stopped or time.monotonic() > end
            return late

        found: dict[bytes, os.stat_result] = {}
        try:
            for item in Walk(top=start, start=start, hidden=True, stop=stop):
                if item.is_folder:
                    continue
                try:
                    status = os.stat(item.name, dir_fd=item.parent, follow_symlinks=False)
                except OSError:
                    continue  # gone meanwhile
                found[os.fsencode(item.path)] = status
                if len(found) > MAX_WALKED:
                    raise NotSeen(f"without git at most {MAX_WALKED:,} files are looked at")
        except OSError as error:
            raise NotSeen(error.strerror or str(error)) from error
        if late:
            raise NotSeen("it took too long")
        return found


def _key(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode
