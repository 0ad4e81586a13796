"""A program on a pseudo terminal of 120 × 40: typed at, read from, timed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from typing import Self

from tests.bench.measure import Home

COLUMNS, LINES = 120, 40
_PATIENCE = 20.0  # seconds
_AGAIN = 0.02  # seconds after which a key that showed nothing is pressed again


class Terminal:
    """Starts ``argv`` on a terminal that echoes nothing by itself."""

    def __init__(
        self, argv: Sequence[str], home: Home, *, environ: dict[str, str] | None = None
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        mode = termios.tcgetattr(slave)
        mode[3] &= ~termios.ECHO  # what is seen was drawn by the program
        termios.tcsetattr(slave, termios.TCSANOW, mode)
        self.heard = bytearray()
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            argv,
            cwd=home.workspace,
            env=home.environ(environ),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.end()
        os.close(self._master)

    def end(self) -> None:
        """End the program: by SIGTERM, and by force if that is not enough."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is not None:
                return
            self.process.send_signal(number)
            self.wait(8)

    def wait(self, seconds: float) -> bool:
        """Read what comes until the program ended; False when it did not."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.02)
        return self.process.poll() is not None

    def read(self, seconds: float) -> bytes:
        """Take what comes within ``seconds``."""
        if not select.select([self._master], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # the other side is closed
            return b""
        self.heard += data
        return data

    def type(self, text: str) -> None:
        """Press keys."""
        with contextlib.suppress(OSError):
            os.write(self._master, text.encode())

    def until(self, *texts: str, seconds: float = _PATIENCE) -> float:
        """Read until one of ``texts`` was drawn; gives seconds since the start.

        Raises:
            RuntimeError: it never was.
        """
        wanted = [text.encode() for text in texts]
        end = time.monotonic() + seconds
        while not any(text in self.heard for text in wanted):
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError(f"{texts} never came; seen: {bytes(self.heard[-1500:])!r}")
            self.read(0.002)
        return time.perf_counter() - self.began

    def usable(self, letter: str = "Ø") -> float:
        """Type a letter as soon as the program reads keys; gives seconds until it is drawn."""
        end = time.monotonic() + _PATIENCE
        while termios.tcgetattr(self._master)[3] & termios.ICANON:
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError(f"it reads no keys; seen: {bytes(self.heard[-1500:])!r}")
            self.read(0.001)
        while time.monotonic() < end:
            self.type(letter)
            with contextlib.suppress(RuntimeError):  # a key before the focus is set goes nowhere
                return self.until(letter, seconds=_AGAIN)
        raise RuntimeError(f"{letter} was never drawn; seen: {bytes(self.heard[-1500:])!r}")

    def idle(self, seconds: float) -> None:
        """Let it be for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(min(0.1, max(0.0, end - time.monotonic())))
