"""How long to wait before a server that went away is started again, and when to give up."""

from __future__ import annotations

import random

from kage.config.schema import RestartSpec

HEALTHY = 60.0  # seconds of life after which earlier failures no longer count
_JITTER = 0.2


class Backoff:
    """Counts the tries since the server was last healthy."""

    def __init__(self, spec: RestartSpec) -> None:
        self._spec = spec
        self.attempt = 0  # the try under way, 0: none since it was healthy

    @property
    def attempts(self) -> int:
        """How many tries there are."""
        return self._spec.max_attempts if self._spec.enabled else 0

    def adjust(self, spec: RestartSpec) -> None:
        """Go by ``spec`` from now on; the tries so far count."""
        self._spec = spec

    def lived(self, seconds: float) -> None:
        """Take note of how long the last connection lived."""
        if seconds >= HEALTHY:
            self.attempt = 0

    def next(self) -> float | None:
        """Give the seconds to wait before the next try, give or take a fifth; None: give up."""
        if self.attempt >= self.attempts:
            return None
        self.attempt += 1
        # the exponent is bounded so that a huge max_attempts cannot overflow
        delay: float = min(
            self._spec.delay * 2.0 ** min(self.attempt - 1, 30), self._spec.max_delay
        )
        return delay * random.uniform(1 - _JITTER, 1 + _JITTER)
