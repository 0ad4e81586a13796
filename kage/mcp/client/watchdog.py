"""Starts processes so that none of them outlives kage, however kage ends (DESIGN section 5).

Each child leads a session of its own and waits for a line on its stdin until its group has been
told to the watchdog process (``reaper.py``), which ends the groups when kage is gone.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import secrets
import signal
import subprocess
import sys
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

from kage.mcp.client.reaper import group_alive, signal_group, tagged
from kage.mcp.client.servers.program import check_text, find_program

TAG_VARIABLE = "KAGE_TAG"
QUIT_GRACE = 0.5  # seconds between TERM and KILL for what is left when kage quits in good order
CLOSE_LIMIT = 5.5  # seconds close() takes at most

_REAPER = Path(__file__).with_name("reaper.py")
_GATE = ("/bin/sh", "-c", 'read -r _ && exec "$@"', "sh")
# a shell drops variables whose names it cannot spell (``spring.datasource.url``); Python does not
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELL_OWN = {"UID", "EUID", "PPID", "SHELLOPTS", "BASHOPTS", "IFS"}
_GATE_ANY = (
    sys.executable,
    "-I",
    "-S",
    "-c",
    "import os,sys\nc=b'x'\nwhile c not in b'\\n':c=os.read(0,1)\n"
    # Python itself adds LC_CTYPE in the C locale (PEP 538); the first argument says to drop it
    "sys.argv[1] and os.environ.pop('LC_CTYPE',0)\n"
    "c and os.execv(sys.argv[2],sys.argv[2:])",
)
_LAST_OUTPUT = 0.2  # seconds
_PRUNE_EVERY = 5.0  # seconds; far less than it takes to use up all process ids


class Child(asyncio.subprocess.Process):
    """A process whose ``wait`` ends with the process, not with whoever else holds its pipes."""

    def __init__(
        self,
        transport: asyncio.SubprocessTransport,
        protocol: _Protocol,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(transport, protocol, loop)
        self._pipes = transport
        self._exited = protocol.exited
        self._drained = protocol.drained
        self.number = 0  # behind the tag in its environment

    async def wait(self) -> int:
        """Wait for the process itself; negative: the signal that ended it."""
        await self._exited.wait()
        code = self.returncode
        return -signal.SIGKILL if code is None else code

    async def settle(self) -> None:
        """Take what it wrote last, which may still be on its way, then ``release``."""
        try:
            await asyncio.wait_for(self._drained.wait(), _LAST_OUTPUT)
        except TimeoutError:
            pass
        finally:
            self.release()

    def release(self) -> None:
        """Close kage's ends of the pipes, whoever holds the other ends."""
        with suppress(PermissionError):  # a child that changed its user cannot be signalled
            self._pipes.close()


class _Protocol(SubprocessStreamProtocol):
    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=limit, loop=loop)
        self.exited = asyncio.Event()
        self.drained = asyncio.Event()  # stdout and stderr have come to their end
        self._outputs: set[int] = set()
        self.on_exit: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._outputs = {1} if self.stderr is None else {1, 2}

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        super().pipe_connection_lost(fd, exc)
        self._outputs.discard(fd)
        if not self._outputs:
            self.drained.set()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()
        if self.on_exit is not None:
            self.on_exit()


class Watchdog:
    """The ``Spawner``: one per kage. Its process is started with the first child."""

    def __init__(self) -> None:
        self._tag = secrets.token_hex(16)
        self._count = 0
        self._reaper: subprocess.Popen[bytes] | None = None
        self._groups: dict[int, Child] = {}  # by group id
        self._endings: dict[int, asyncio.Task[None]] = {}
        self._prune_timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def tag(self) -> str:
        """What stands in ``KAGE_TAG`` of every child, followed by a dot and its number."""
        return self._tag

    @property
    def pid(self) -> int | None:
        """The watchdog process; None before the first child and after ``close``."""
        return None if self._reaper is None else self._reaper.pid

    @property
    def groups(self) -> frozenset[int]:
        """The process groups that are registered now."""
        return frozenset(self._groups)

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stderr: int | IO[bytes] | None = None,
        limit: int = 1 << 16,
    ) -> Child:
        """Start ``argv`` as leader of its own session, stdin and stdout piped.

        See ``core.processes.Spawner``. ``wait`` of the result returns when the process ends,
        even while something else holds its stdout.

        Raises:
            OSError: the program or ``cwd`` cannot be used; ``filename`` says which.
        """
        if self._closing is not None:
            raise OSError(errno.ESHUTDOWN, "kage is closing", argv[0])
        check_text(argv, env)
        program = find_program(argv[0], cwd=cwd, env=env)
        self._ensure()
        self._count += 1
        number = self._count
        loop = asyncio.get_running_loop()
        gate: tuple[str, ...] = _GATE
        if not all(map(_survives_shell, env)):
            gate = (*_GATE_ANY, "" if "LC_CTYPE" in env else "drop")
        try:
            transport, protocol = await loop.subprocess_exec(
                lambda: _Protocol(limit, loop),
                *gate,
                program,
                *argv[1:],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=cwd,
                env={**env, TAG_VARIABLE: f"{self._tag}.{number}"},
                start_new_session=True,
            )
        except OSError as error:
            error.filename = program if error.filename in {None, gate[0]} else error.filename
            raise
        # no await from here to the go line: a cancel in between would leave it waiting
        child = Child(transport, protocol, loop)
        child.number = number
        self._groups[child.pid] = child
        protocol.on_exit = lambda: self._leader_left(child.pid)
        try:
            self._register(child.pid)
        except OSError:
            signal_group(child.pid, signal.SIGKILL)
            child.release()
            del self._groups[child.pid]
            raise
        if protocol.exited.is_set():
            self._leader_left(child.pid)
        if child.stdin is not None:
            child.stdin.write(b"\n")
        return child

    async def end(self, process: asyncio.subprocess.Process, *, grace: float = 2.0) -> None:
        """End the whole group: TERM, ``grace`` seconds, KILL; also after its leader left.

        Safe to cancel, even twice: the ending goes on by itself. Asking again joins it.
        """
        pgid = process.pid
        if self._groups.get(pgid) is process and pgid not in self._endings:
            task = asyncio.create_task(self._end(self._groups[pgid], grace), name=f"end {pgid}")
            self._endings[pgid] = task
            task.add_done_callback(lambda _: self._endings.pop(pgid, None))
        if (ending := self._endings.get(pgid)) is not None:
            await asyncio.shield(ending)
        elif isinstance(process, Child):
            await process.settle()

    async def strays(self, process: asyncio.subprocess.Process) -> Mapping[int, str]:
        """Find what ``process`` started that left its group and still runs, by the tag it bears."""
        if not isinstance(process, Child) or not process.number:
            return {}
        tag = f"{self._tag}.{process.number}\0"
        found = await asyncio.to_thread(tagged, tag)
        return {pid: _command_line(pid) for pid in sorted(found)}

    async def close(self) -> None:
        """End whatever is left, tagged daemons included, in under six seconds; once is enough.

        Nothing can be started afterwards.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="close watchdog")
        await asyncio.shield(self._closing)

    # ------------------------------------------------------------------ groups

    def _leader_left(self, pgid: int) -> None:
        """Forget an empty group at once, so that its number may be used again by others."""
        if pgid in self._groups and not signal_group(pgid, 0):
            self._forget(pgid)
        elif self._prune_timer is None and self._closing is None:
            self._prune_later()

    def _prune_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._prune_timer = loop.call_later(_PRUNE_EVERY, self._prune)

    def _prune(self) -> None:
        """Forget groups whose last member left; runs only while a group lacks its leader."""
        self._prune_timer = None
        headless = [pgid for pgid, child in self._groups.items() if child.returncode is not None]
        for pgid in headless:
            if not signal_group(pgid, 0):
                self._forget(pgid)
        if any(pgid in self._groups for pgid in headless):
            self._prune_later()

    def _forget(self, pgid: int) -> None:
        self._groups.pop(pgid, None)
        with suppress(OSError):
            self._tell(f"-{pgid}\n")

    async def _end(self, child: Child, grace: float) -> None:
        pgid = child.pid
        try:
            if child.stdin is not None:
                child.stdin.close()
            if grace > 0 and signal_group(pgid, signal.SIGTERM):
                await _gone(pgid, grace)
        finally:  # also when the loop is torn down under it
            signal_group(pgid, signal.SIGKILL)
        await _gone(pgid, 1.0)
        with suppress(TimeoutError):
            await asyncio.wait_for(child.wait(), 1.0)
        await child.settle()
        if not group_alive(pgid):
            self._forget(pgid)

    # ------------------------------------------------------------------ the watchdog process

    def _ensure(self) -> subprocess.Popen[bytes]:
        """Start the process if there is none, and tell a new one about every living group."""
        if self._reaper is not None:
            if self._reaper.poll() is None:
                return self._reaper
            self._drop_reaper()
        reaper = self._reaper = subprocess.Popen(
            (sys.executable, "-I", "-S", str(_REAPER), self._tag),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,  # whoever reads kage's output must see it end with kage
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,  # a terminal's Ctrl-C and hang-up do not reach it
            bufsize=0,
        )
        if reaper.stdin is not None:
            os.set_blocking(reaper.stdin.fileno(), False)
        for pgid in self._groups:
            self._tell(f"+{pgid}\n")
        return reaper

    def _register(self, pgid: int) -> None:
        try:
            self._tell(f"+{pgid}\n")
        except OSError:  # it died, or was stopped until its pipe was full
            self._drop_reaper()
            self._ensure()

    def _tell(self, line: str) -> None:
        if self._reaper is None or self._reaper.stdin is None or self._reaper.stdin.closed:
            return
        data = line.encode()
        if self._reaper.stdin.write(data) != len(data):
            raise BlockingIOError(errno.EAGAIN, "the watchdog process does not read")

    def _drop_reaper(self) -> None:
        reaper, self._reaper = self._reaper, None
        if reaper is None:
            return
        reaper.kill()
        _hang_up(reaper)
        reaper.wait()

    async def _close(self) -> None:
        if self._prune_timer is not None:
            self._prune_timer.cancel()
        if self._reaper is None:
            return
        loop = asyncio.get_running_loop()
        end = loop.time() + CLOSE_LIMIT
        try:
            for _ in range(3):  # one that is killed just now has to be replaced, too
                reaper = self._ensure()
                with suppress(OSError):
                    self._tell(f"~{QUIT_GRACE}\n")
                _hang_up(reaper)
                await _until(partial(_has_left, reaper), end - loop.time())
                if reaper.poll() in {0, None}:
                    break
        except OSError:
            pass  # no process can be started any more; the groups still end here
        finally:
            for pgid, child in self._groups.items():
                if group_alive(pgid):
                    signal_group(pgid, signal.SIGKILL)
                child.release()
            self._groups.clear()
            self._drop_reaper()


def _survives_shell(name: str) -> bool:
    return _PLAIN_NAME.fullmatch(name) is not None and name not in _SHELL_OWN


def _command_line(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(4096).split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode("utf-8", "replace").strip()


def _has_left(reaper: subprocess.Popen[bytes]) -> bool:
    return reaper.poll() is not None


def _hang_up(reaper: subprocess.Popen[bytes]) -> None:
    if reaper.stdin is not None:
        with suppress(OSError):
            reaper.stdin.close()


async def _gone(pgid: int, seconds: float) -> None:
    """Wait until nobody alive is left in the group."""
    await _until(lambda: not group_alive(pgid), seconds)


async def _until(probe: Callable[[], bool], seconds: float) -> None:
    loop = asyncio.get_running_loop()
    end, pause = loop.time() + seconds, 0.002
    while not probe() and loop.time() < end:
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.05)
