"""Runs an MCP server as a process and carries messages over its stdin and stdout.

Starting needs no SDK, so that a server can come up while the SDK is still being imported.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from kage.core.errors import ServerError
from kage.core.processes import Spawner
from kage.core.sandbox import SandboxRefused
from kage.core.servers import Stage
from kage.mcp.client.servers.program import find_program
from kage.mcp.client.transport.base import Streams
from kage.mcp.client.transport.launch import Launch, StderrMode, spawn_failure
from kage.mcp.client.transport.stderr import Drain
from kage.mcp.client.wire.ends import Inbox, Reader

if TYPE_CHECKING:
    from kage.mcp.client.transport.pumps import Inlet, Outlet, Traffic

__all__ = ["Launch", "StderrMode", "StdioTransport"]

EOF_GRACE = 2.0  # seconds a server has to leave after its stdin was closed (specification)
TERM_GRACE = 2.0  # seconds between TERM and KILL
_SETTLE = 0.3  # seconds the last lines of stderr may take after the process left
_AHEAD = 4  # messages read before anybody takes them; each may be as long as the limit
_PIPE_LIMIT = 1 << 18  # bytes buffered per pipe before reading pauses, times two
_STDERR = {"inherit": None, "pipe": subprocess.PIPE, "null": subprocess.DEVNULL}


class StdioTransport:
    """One server process; used once.

    Args:
        launch: what to start.
        spawner: the watchdog.
        stderr: inherit fd 2 as it is, drain it into ``on_stderr``, or throw it away.
        on_stderr: gets each line, not sanitised; long lines and floods are cut with a note.
        on_stray: gets each line on stdout that is no protocol, clipped, not sanitised.
        max_message_bytes: the longest line the server may send.
    """

    def __init__(
        self,
        launch: Launch,
        *,
        spawner: Spawner,
        stderr: StderrMode,
        on_stderr: Callable[[str], None],
        on_stray: Callable[[str], None],
        max_message_bytes: int,
    ) -> None:
        self._launch = launch
        self._spawner = spawner
        self._stderr: StderrMode = stderr
        self._on_stderr = on_stderr
        self._on_stray = on_stray
        self._limit = max_message_bytes
        self._process: asyncio.subprocess.Process | None = None
        self._exit: asyncio.Task[int] | None = None
        self._drain: asyncio.Task[None] | None = None
        self._pumps: list[asyncio.Task[None]] = []
        self._inlet: Inlet | None = None
        self._outlet: Outlet | None = None
        self._traffic: Traffic | None = None
        self._closing: asyncio.Task[None] | None = None
        self._closed = False

    async def spawn(self) -> None:
        """Start the process.

        Raises:
            ServerError: stage spawn; it names what is missing and what to do.
        """
        launch = self._launch
        try:
            argv, env = await self._caged()
            process = await self._spawner.spawn(
                argv,
                cwd=launch.cwd,
                env=env,
                stderr=_STDERR[self._stderr],
                limit=_PIPE_LIMIT,
            )
        except OSError as error:
            raise spawn_failure(error, launch) from error
        except SandboxRefused as error:
            raise ServerError(
                error.what, server=launch.server, stage=Stage.SPAWN, why=error.why, fix=error.fix
            ) from error
        self._process = process
        name = f"{launch.server or launch.argv[0]} ({process.pid})"
        self._exit = asyncio.create_task(process.wait(), name=f"exit of {name}")
        self._exit.add_done_callback(self._process_left)
        if process.stderr is not None:
            drain = Drain(process.stderr, self._on_stderr)
            self._drain = asyncio.create_task(drain.run(), name=f"stderr of {name}")
        if self._closed:  # close() came while it was starting
            await self.close()
            what = f"{launch.argv[0]} was stopped while it started"
            raise ServerError(what, server=launch.server, stage=Stage.SPAWN)

    async def _caged(self) -> tuple[tuple[str, ...], Mapping[str, str]]:
        """Give what to start and its environment; raises OSError, SandboxRefused."""
        launch = self._launch
        argv = (launch.executable or launch.argv[0], *launch.argv[1:])
        if launch.cage is None:
            return argv, launch.env
        # looked for here: the spawner sees what makes the sandbox, and not what is wrong inside
        program = find_program(argv[0], cwd=launch.cwd, env=launch.env)
        wrapped = await launch.cage.around(
            (os.path.abspath(program), *argv[1:]),
            launch.env,
            workspace=launch.workspace,
            name=f"server-{launch.server}",
            show=(launch.cwd,),
        )
        return wrapped.argv, wrapped.env

    @property
    def pid(self) -> int | None:
        """The process, which leads the group of the same number; None before ``spawn``."""
        return None if self._process is None else self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return None if self._process is None else self._process.returncode

    @property
    def stalled_since(self) -> float | None:
        """Since when (loop time) the server takes nothing of a write under way; None: no write."""
        return None if self._outlet is None else self._outlet.stalled_since

    @property
    def ended(self) -> str:
        """What the server did that ended the streams, "" while they live or when it just left."""
        if self._inlet is None or (self.exit_code is not None and not self._inlet.at_fault):
            return ""
        return self._inlet.reason

    @property
    def traffic(self) -> Traffic | None:
        """Counters; None before ``streams``."""
        return self._traffic

    async def wait(self) -> int:
        """Wait until the process has ended and its last lines of stderr were handed over.

        Returns:
            The exit code; negative: the signal. Something else that holds the pipes changes
            nothing.

        Raises:
            RuntimeError: called before ``spawn``.
        """
        if self._exit is None:
            raise RuntimeError("the process was never started")
        code = await asyncio.shield(self._exit)
        if self._drain is not None:
            await asyncio.wait({self._drain}, timeout=_SETTLE)
        return code

    def streams(self) -> Streams:
        """Give the streams ``mcp.Client`` takes; leaving the context closes the transport."""
        return self._streams()

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[tuple[Reader, Outlet]]:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise RuntimeError("the process was never started")
        from kage.mcp.client.transport.pumps import Inlet, Outlet, Traffic

        inbox = Inbox(_AHEAD)
        self._traffic = Traffic()
        inlet = self._inlet = Inlet(
            process.stdout,
            inbox,
            limit=self._limit,
            on_stray=self._on_stray,
            traffic=self._traffic,
        )
        outlet = self._outlet = Outlet(
            process.stdin, traffic=self._traffic, failed=self._input_failed
        )
        if self.exit_code is not None:
            inlet.process_left()
        self._pumps = [asyncio.create_task(inlet.run(), name=f"stdout of {process.pid}")]
        try:
            yield Reader(inbox), outlet
        finally:
            inbox.close()
            outlet.close()
            await self.close()

    async def close(self) -> None:
        """End the server: EOF, 2 s, TERM to the group, 2 s, KILL; the group in every case.

        Safe to cancel, even twice: the ending goes on by itself. Asking again joins it.
        """
        self._closed = True
        if self._process is None:
            return
        if self._closing is None:
            task = asyncio.create_task(self._shut_down(self._process), name=f"close {self.pid}")
            self._closing = task
        await asyncio.shield(self._closing)

    async def _shut_down(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is not None:
            process.stdin.close()
        if not self._pumps and process.stdout is not None:
            # it may not leave while its output waits
            self._pumps = [asyncio.create_task(_discard(process.stdout))]
        try:
            if self._exit is not None:
                await asyncio.wait({self._exit}, timeout=EOF_GRACE)
        except asyncio.CancelledError:  # the loop is going down: no time for manners
            if process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            raise
        await self._spawner.end(process, grace=TERM_GRACE)
        tasks = {task for task in (*self._pumps, self._drain) if task is not None}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_SETTLE)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._outlet is not None:
            await self._outlet.end()
        if self._exit is not None and not self._exit.done():
            self._exit.cancel()

    def _input_failed(self, reason: str) -> None:
        self._pumps.append(asyncio.create_task(self._give_up(reason), name=f"stdin {self.pid}"))

    async def _give_up(self, reason: str) -> None:
        if self._closed:
            return
        if reason == "it closed its input" and self._exit is not None:
            # it is most likely gone; then its last words come first
            await asyncio.wait({self._exit}, timeout=_SETTLE)
        if self.exit_code is None and self._inlet is not None:
            self._inlet.fail(reason)

    def _process_left(self, _: asyncio.Task[int]) -> None:
        if self._inlet is not None:
            self._inlet.process_left()


async def _discard(pipe: asyncio.StreamReader) -> None:
    while await pipe.read(1 << 18):
        pass
