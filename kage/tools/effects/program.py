"""Run git in a repository of kage's own, where nothing but kage's own settings count."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from kage.tools.effects.looking import NotSeen


@dataclass(slots=True, kw_only=True)
class Git:
    """The program with everything it is told; ``stop`` may come from another thread.

    Args:
        program: Where git is.
        workspace: The work tree.
        folder: The repository.
    """

    program: str
    workspace: Path
    folder: Path
    _stopped: threading.Event = field(default_factory=threading.Event, init=False)
    _running: set[subprocess.Popen[bytes]] = field(default_factory=set, init=False)

    def run(
        self,
        arguments: Sequence[str],
        end: float,
        *,
        given: bytes = b"",
        index: Path | None = None,
    ) -> bytes:
        """Run git and give its output; through files, so that neither side waits for the other.

        Args:
            arguments: What git does.
            end: Monotonic seconds until which it may take.
            given: Its input.
            index: Another index than the repository's.

        Raises:
            OSError: it cannot be started.
            subprocess.SubprocessError: it failed, or took too long.
            NotSeen: kage is closing.
        """
        with tempfile.TemporaryFile() as into, tempfile.TemporaryFile() as out:
            into.write(given)
            into.seek(0)
            with self.started(arguments, out, given=into, index=index) as process:
                finish(process, end)
            out.seek(0)
            return out.read()

    @contextlib.contextmanager
    def started(
        self,
        arguments: Sequence[str],
        out: IO[bytes],
        *,
        given: IO[bytes] | int = subprocess.DEVNULL,
        index: Path | None = None,
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start git; it is over when the block is left, whatever it does."""
        if self._stopped.is_set():
            raise NotSeen("kage is closing")
        process = subprocess.Popen(
            [self.program, *arguments],
            cwd=self.workspace,
            env=self._environment(index),
            stdin=given,
            stdout=out,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._running.add(process)
        try:
            if self._stopped.is_set():  # it came while this one was started
                _kill(process)
            yield process
        finally:
            if process.poll() is None:
                _kill(process)
                process.wait()
            self._running.discard(process)

    def stop(self) -> None:
        """End what runs, and start nothing more."""
        self._stopped.set()
        for process in tuple(self._running):
            _kill(process)

    def _environment(self, index: Path | None) -> dict[str, str]:
        return {
            "PATH": os.defpath,
            "HOME": str(self.folder),
            "LC_ALL": "C",
            "GIT_DIR": str(self.folder),
            "GIT_WORK_TREE": str(self.workspace),
            "GIT_INDEX_FILE": str(index or self.folder / "index"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
        }


def find(environ: Mapping[str, str], workspace: Path) -> str | None:
    """Find git on PATH; a program inside the workspace is not it."""
    real = os.path.realpath(workspace)
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        if not os.path.isabs(folder):
            continue
        found = shutil.which("git", path=folder)
        if found and not Path(os.path.realpath(found)).is_relative_to(real):
            return found
    return None


def finish(process: subprocess.Popen[bytes], end: float) -> None:
    """Wait until it is over.

    Raises:
        subprocess.SubprocessError: it failed, or is not over at ``end``.
    """
    code = process.wait(timeout=max(0.01, end - time.monotonic()))
    if code:
        raise subprocess.CalledProcessError(code, "git")


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
