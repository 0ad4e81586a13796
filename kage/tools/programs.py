"""Find and run helper programs: where they are, in groups of their own, how they end."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

_POLL = 0.02  # seconds between looks at a process where the system has no pidfd


class Groups:
    """Starts processes in groups of their own where no watchdog is wired in.

    Implements ``core.processes.Spawner`` for programs that end by themselves: searches and
    conversions. It promises less than the watchdog: what it started outlives a killed kage
    until its pipe breaks or it is done.
    """

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stderr: int | IO[bytes] | None = None,
        limit: int = 1 << 16,
    ) -> asyncio.subprocess.Process:
        """Start ``argv`` as leader of its own session, stdin and stdout piped.

        Raises:
            OSError: the program or ``cwd`` cannot be used.
        """
        return await asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=dict(env),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            limit=limit,
            start_new_session=True,
        )

    async def end(self, process: asyncio.subprocess.Process, *, grace: float = 2.0) -> None:
        """End the whole group: TERM, ``grace`` seconds, KILL."""
        if process.returncode is None and grace > 0:
            _signal_group(process.pid, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(exited(process), grace)
        _signal_group(process.pid, signal.SIGKILL)
        await exited(process)

    async def strays(self, process: asyncio.subprocess.Process) -> Mapping[int, str]:
        """Find nothing: what leaves its group cannot be told from others here."""
        return {}


def _signal_group(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def group_lives(leader: int) -> bool:
    """Say whether a group has a member that is more than one nobody has collected yet."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return True
    return any(map(functools.partial(_belongs, leader), names))


def _belongs(leader: int, name: str) -> bool:
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            state, _, group = file.read().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return False
    return int(group) == leader and state not in (b"Z", b"X")


async def exited(process: asyncio.subprocess.Process) -> int:
    """Wait for the process itself, also while something else holds its pipes; its exit code.

    ``Process.wait`` waits for the pipes as well, so one background child would hold it up.
    """
    if process.returncode is None and hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            await _readable(os.pidfd_open(process.pid))
    while process.returncode is None:  # after a pidfd: the child watcher is about to say it
        await asyncio.sleep(_POLL if not hasattr(os, "pidfd_open") else 0.001)
    return process.returncode


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def which(name: str, environ: Mapping[str, str]) -> str | None:
    """Find the program ``name`` on PATH or beside this Python; relative PATH entries are skipped.

    ``shutil.which`` would do, but importing it costs the compression libraries.
    """
    for folder in _folders(environ):
        candidate = os.path.join(folder, name)
        if os.path.isabs(folder) and os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return candidate
    return None


def _folders(environ: Mapping[str, str]) -> Iterator[str]:
    yield from environ.get("PATH", os.defpath).split(os.pathsep)
    yield os.path.dirname(sys.executable)
    import sysconfig  # only when the cheap places have nothing

    yield sysconfig.get_path("scripts")


async def settle(ending: asyncio.Future[None]) -> None:
    """Wait for clean-up that must be done also when this task is cancelled meanwhile."""
    try:
        await asyncio.shield(ending)
    except asyncio.CancelledError:
        while not ending.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
        raise
