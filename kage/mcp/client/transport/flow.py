"""Which notifications of a flooding server are passed on, held back or dropped.

Under pressure notifications may be lost, progress in favour of later progress of the same call; a
change notice may be delayed and merged with a later one of its kind, but the last one always comes
through. Requests and answers are none of this module's business: they always pass.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

_CHANGES = {
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
}
_PROGRESS = "notifications/progress"
_TALK = {"notifications/message", "notifications/resources/updated"}
_MAX_HELD = 256


@dataclass(slots=True)
class Bucket:
    """Lets ``burst`` through at once and ``rate`` per second in the long run."""

    burst: float
    rate: float
    level: float = 0.0
    seen: float = 0.0

    def __post_init__(self) -> None:
        self.level = self.burst

    def take(self, now: float, amount: float = 1.0) -> bool:
        """Say whether ``amount`` more may pass at ``now`` (monotonic seconds)."""
        self.level = min(self.burst, self.level + (now - self.seen) * self.rate)
        self.seen = now
        if self.level < amount:
            return False
        self.level -= amount
        return True


class Flow:
    """Judges messages as they come; ``admit`` and ``due`` give those to pass on, in order."""

    def __init__(self, *, gap: float = 0.05) -> None:
        self.dropped = 0  # notifications that never reached anybody
        self._gap = gap  # seconds between two passes of held notices
        self._talk = Bucket(burst=1000, rate=500)
        self._rest = Bucket(
            burst=1000, rate=500
        )  # cancellations and the like have room of their own
        self._changes = Bucket(burst=20, rate=10)
        self._held: dict[str, Any] = {}  # whatever the caller hands in
        self._next = 0.0

    def admit(
        self, message: object, method: str, params: dict[str, Any] | None, now: float
    ) -> bool:
        """Say whether a notification passes now; if not it is held or dropped, and counted."""
        if method in _CHANGES:
            return self._changes.take(now) or not self._hold(_key(method, params), message, now)
        if method == _PROGRESS:
            if self._talk.take(now):
                self._release(_key(method, params))
                return True
            if not self._hold(_key(method, params), message, now):
                self.dropped += 1
            return False
        bucket = self._talk if method in _TALK else self._rest
        if bucket.take(now):
            return True
        self.dropped += 1
        return False

    @property
    def next(self) -> float | None:
        """When ``due`` has something to give (monotonic seconds); None: nothing is held."""
        return self._next if self._held else None

    def due(self, now: float, *, all_of_them: bool = False) -> list[Any]:
        """Give the held messages whose time has come."""
        if not self._held or (now < self._next and not all_of_them):
            return []
        messages = list(self._held.values())
        self._held.clear()
        return messages

    def _hold(self, key: str, message: object, now: float) -> bool:
        if key in self._held:
            self.dropped += 1  # its place is taken by the later one
            self._held.pop(key)
        elif len(self._held) >= _MAX_HELD:
            return False
        if not self._held:
            self._next = now + self._gap
        self._held[key] = message
        return True

    def _release(self, key: str) -> None:
        """Drop an older held notice that a newer one has overtaken."""
        if self._held and self._held.pop(key, None) is not None:
            self.dropped += 1


def _key(method: str, params: dict[str, Any] | None) -> str:
    """Tell apart what may not be merged: progress by its token, changes by their subscription."""
    params = params or {}
    which = params.get("progressToken") if method == _PROGRESS else params.get("_meta")
    try:
        return f"{method} {json.dumps(which, sort_keys=True)[:500]}"
    except (TypeError, ValueError, RecursionError):
        return method
