"""A real pseudo-terminal with a program in it, and what stands on its screen."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyte

ROOT = Path(__file__).parents[2]


class Terminal:
    """Runs a program on a pty and reads its screen through a terminal emulator."""

    def __init__(
        self,
        argv: list[str],
        *,
        columns: int = 80,
        lines: int = 24,
        cwd: Path = ROOT,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.master, self._slave = pty.openpty()
        self.resize(columns, lines)
        self.modes = termios.tcgetattr(self._slave)
        environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
        environment.update(environ or {})
        self.process = subprocess.Popen(
            argv, stdin=self._slave, stdout=self._slave, stderr=self._slave, cwd=cwd,
            env=environment, start_new_session=True, preexec_fn=_take_terminal,  # noqa: PLW1509
        )  # fmt: skip

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)
        self.screen.resize(lines, columns)

    def send(self, text: str) -> None:
        """Type ``text``."""
        os.write(self.master, text.encode())

    def read(self, seconds: float = 0.05) -> None:
        """Take in what was written, waiting at most ``seconds`` for the first byte."""
        while select.select([self.master], [], [], seconds)[0]:
            try:
                data = os.read(self.master, 1 << 16)
            except OSError:  # nobody holds the other end
                return
            self.raw += data
            # pyte knows no private modes with other intermediates; they draw nothing
            with contextlib.suppress(TypeError):
                self._stream.feed(data)
            seconds = 0.0

    @property
    def text(self) -> str:
        """The screen, line by line."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def until(self, words: str, *, deadline: float = 60.0) -> None:
        """Wait until ``words`` are on the screen."""
        end = time.monotonic() + deadline
        while words not in self.text:
            assert time.monotonic() < end, f"{words!r} never came; the screen:\n{self.text}"
            self.read()

    def ended(self, *, deadline: float = 60.0) -> int:
        """Wait for the end; give the exit code."""
        end = time.monotonic() + deadline
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it never ended; the screen:\n{self.text}"
            self.read()
        self.read()
        return self.process.returncode

    def modes_restored(self) -> bool:
        """Say whether the terminal is as it was before."""
        return termios.tcgetattr(self._slave) == self.modes

    def hang_up(self) -> None:
        """Close the terminal as a window that is closed does."""
        os.close(self._slave)
        os.close(self.master)
        self.master = self._slave = -1

    def close(self) -> None:
        """End what still runs."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for descriptor in (self.master, self._slave):
            if descriptor >= 0:
                os.close(descriptor)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextlib.contextmanager
def demo(
    log: Path, scene: str = "chat", *, columns: int = 80, lines: int = 24
) -> Iterator[Terminal]:
    """Run the demo on a terminal."""
    argv = [sys.executable, "-m", "tests.tui.demo", str(log), scene]
    terminal = Terminal(argv, columns=columns, lines=lines)
    try:
        yield terminal
    finally:
        terminal.close()
