"""Hand each event to every listener, in order; a listener that fails costs nobody else."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from kage.core.events import Event

_log = logging.getLogger(__name__)


class Bus:
    """Synchronous publish and subscribe on one event loop.

    Args:
        screen: Gives what is told for an event; without one each is told as it is.
    """

    def __init__(self, screen: Callable[[Event], Iterable[Event]] | None = None) -> None:
        self._screen = screen
        self._listeners: list[Callable[[Event], None]] = []

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``listener`` with each event from now on; the result ends it."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def publish(self, event: Event) -> None:
        """Tell every listener at once."""
        for told in self._screen(event) if self._screen is not None else (event,):
            self._tell(told)

    def _tell(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:  # a front end's mistake must not end a run; the log has it
                _log.exception("a listener failed on %s", type(event).__name__)
