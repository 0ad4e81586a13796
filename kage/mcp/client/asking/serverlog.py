"""Log messages of a server: which level it is asked for, and how many are kept."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from kage.core.sanitise import clip

LEVELS = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
RATE = 20.0  # messages a second kept in the long run
BURST = 200
_CLIP = 2_000  # characters of one message


class ServerLog:
    """Keeps log messages at or above ``level`` ("": all that come), thinned under a flood.

    Args:
        keep: Takes the words of one message.
        now: Monotonic seconds.
    """

    def __init__(
        self,
        keep: Callable[[str], None],
        level: str = "",
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.level = level
        self.muted = False
        self.dropped = 0  # since the last one kept
        self._keep = keep
        self._room = float(BURST)
        self._now = now
        self._last = now()

    def take(self, params: Mapping[str, Any]) -> None:
        """Keep one ``notifications/message``."""
        level = params.get("level")
        level = level if isinstance(level, str) and level in LEVELS else "info"
        if self.muted:
            return
        if self.level and LEVELS.index(level) < LEVELS.index(self.level):
            return
        now = self._now()
        self._room = min(float(BURST), self._room + (now - self._last) * RATE)
        self._last = now
        if self._room < 1.0:
            self.dropped += 1
            return
        self._room -= 1.0
        if self.dropped:
            self._keep(f"({self.dropped} messages before this one were left out)")
            self.dropped = 0
        source = params.get("logger")
        name = f" {clip(source, 60)}" if isinstance(source, str) and source else ""
        self._keep(f"{level}{name}: {_words(params.get('data'))}")


def _words(data: object) -> str:
    if isinstance(data, str):
        return clip(data, _CLIP)
    try:
        return clip(json.dumps(data, ensure_ascii=False, default=str), _CLIP)
    except (ValueError, RecursionError):
        return "(a message kage cannot show)"
