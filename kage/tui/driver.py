"""The terminal as kage uses it: draws beside a redirected stderr and notices when it is gone."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from textual.app import App


class TerminalFile:
    """Writes to the terminal; once that fails, everything further is dropped.

    The writer thread of the driver would die with the first error and leave a full queue that
    blocks the event loop for ever.
    """

    def __init__(self, file: IO[str], on_lost: Callable[[], None]) -> None:
        self._file = file
        self._on_lost = on_lost
        self._lost = False

    def write(self, text: str) -> int:
        """Write ``text``, or drop it when the terminal is gone."""
        if not self._lost:
            try:
                return self._file.write(text)
            except (OSError, ValueError):  # ValueError: the file was closed
                self._fail()
        return len(text)

    def flush(self) -> None:
        """Push out what was written."""
        if not self._lost:
            try:
                self._file.flush()
            except (OSError, ValueError):
                self._fail()

    def fileno(self) -> int:
        """Give the descriptor of the terminal."""
        return self._file.fileno()

    def isatty(self) -> bool:
        """Say whether it is a terminal."""
        return self._file.isatty()

    def _fail(self) -> None:
        self._lost = True
        self._on_lost()


class KageDriver(LinuxDriver):
    """Draws on stdout (stderr belongs to the app log) and reports a terminal that went away."""

    def __init__(
        self,
        app: App[Any],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        out = sys.__stdout__
        assert out is not None  # the app is started on a terminal only
        self._file = TerminalFile(out, self._lost)  # type: ignore[assignment]  # all the writer needs
        self._watching = False

    def _get_terminal_size(self) -> tuple[int, int]:
        """Ask the terminal: an exported COLUMNS or LINES would win over it and never change."""
        for descriptor in (1, 0):
            with contextlib.suppress(OSError):
                width, height = os.get_terminal_size(descriptor)
                if width > 0 and height > 0:
                    return width, height
        return super()._get_terminal_size()

    def start_application_mode(self) -> None:
        """Take over the terminal and watch it."""
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual's is untyped
        if not self._watching:
            self._watching = True
            watch = threading.Thread(target=self._watch, name="kage-hangup", daemon=True)
            watch.start()

    def _watch(self) -> None:
        # a hung-up terminal reads as an endless end of file; only POLLHUP tells
        poll = select.poll()
        try:
            poll.register(os.dup(self.fileno), 0)
            for _, flags in poll.poll():
                if flags & select.POLLHUP:
                    self._lost()
        except OSError:
            return  # no such notice on this system; the writer still reports

    def _lost(self) -> None:
        leave = getattr(self._app, "stop_for", None)
        if leave is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: kage is leaving already
                self._loop.call_soon_threadsafe(leave, signal.SIGHUP)
