"""When the view draws: gathered changes, one ticker while something moves, quiet moments."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.timer import Timer
from textual.widget import Widget


class Pace:
    """The timers of one view; none runs while nothing happens.

    Args:
        widget: Whose timers they are.
        draw: Draws what changed.
        tick: Draws the next picture of what moves.
        spare: Does a slice of work for quiet moments and says if more is left.
    """

    def __init__(
        self,
        widget: Widget,
        *,
        draw: Callable[[], None],
        tick: Callable[[], None],
        spare: Callable[[], bool],
    ) -> None:
        self._widget = widget
        self._draw, self._tick, self._spare = draw, tick, spare
        self._drawn = 0.0  # when it was last drawn
        self._pending: Timer | None = None
        self._ticker: Timer | None = None
        self._quiet: Timer | None = None

    @property
    def ticking(self) -> bool:
        """Whether something moves."""
        return self._ticker is not None

    def soon(self, gap: float) -> None:
        """Draw at the earliest ``gap`` seconds after the last time."""
        if self._pending is None:
            due = self._drawn + gap - time.monotonic()
            self._pending = self._widget.set_timer(max(0.001, due), self._due)

    def drawn(self) -> None:
        """Note that everything is drawn."""
        self._drawn = time.monotonic()
        if self._pending is not None:
            self._pending.stop()
            self._pending = None

    def animate(self, every: float | None) -> None:
        """Tick once in ``every`` seconds from now on, or not at all."""
        if every is None:
            if self._ticker is not None:
                self._ticker.stop()
                self._ticker = None
        elif self._ticker is None:
            self._ticker = self._widget.set_interval(every, self._tick)

    def rest(self, quiet: float, pause: float) -> None:
        """After ``quiet`` seconds without another call, work in slices with pauses between."""
        if self._quiet is not None:
            self._quiet.stop()

        def work() -> None:
            self._quiet = None
            if self._spare():
                self._quiet = self._widget.set_timer(pause, work)

        self._quiet = self._widget.set_timer(quiet, work)

    def _due(self) -> None:
        self._pending = None
        self._draw()
