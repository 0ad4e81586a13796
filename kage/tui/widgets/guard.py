"""The quiet period before an approval may be answered (TUI.md, "Approval panel")."""

from __future__ import annotations

import math

QUIET = 0.4  # seconds without a key before an answer counts
LONGEST = 2.0  # seconds after which the guard ends however much is typed


class Guard:
    """Says whether a key pressed at some moment may answer the question on the screen.

    Times are the moments the keys were pressed (monotonic seconds), not when they were handled: a
    key typed before the panel was painted never answers, however busy the loop was.
    """

    def __init__(self, quiet: float = QUIET, longest: float = LONGEST) -> None:
        self._quiet = quiet
        self._longest = max(longest, quiet)
        self._shown: float | None = None
        self._last = 0.0

    def hide(self) -> None:
        """Nothing is on the screen: no key answers."""
        self._shown = None

    def show(self, now: float) -> None:
        """The question was painted at ``now``."""
        self._shown = self._last = now

    def swallow(self, now: float) -> None:
        """A key went into the draft instead of answering; the quiet period begins again."""
        self._last = max(self._last, now)

    def remaining(self, now: float) -> float:
        """Seconds until an answer counts, 0 when it would count at ``now``."""
        if self._shown is None:
            return self._quiet
        opens = min(self._last + self._quiet, self._shown + self._longest)
        return max(0.0, opens - now)

    def accepts(self, now: float) -> bool:
        """Whether a key pressed at ``now`` may answer."""
        return self._shown is not None and self.remaining(now) <= 0.0

    def gauge(self, now: float) -> str:
        """Draw the part of the quiet period that is over, in four cells."""
        full = self._quiet or 1.0
        done = 4 - min(4, math.ceil(4 * self.remaining(now) / full))  # full only when it counts
        return "▮" * done + "▯" * (4 - done)
