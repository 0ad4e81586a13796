"""Every server that is wanted, and the steps that lead from one set of entries to another."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Coroutine, Iterable

from kage.config.schema import ServerSpec
from kage.core.errors import KageError, ServerError, UsageError
from kage.core.events import Noticed, Publish
from kage.core.levels import Level
from kage.core.servers import ServerState
from kage.mcp.client.faults import StartFailed
from kage.mcp.client.servers.reconcile import Act, Step, reconcile
from kage.mcp.client.servers.server import Server
from kage.mcp.client.servers.wares import Tools
from kage.mcp.names import did_you_mean

_RUNNING = (
    ServerState.CONNECTING,
    ServerState.CONNECTED,
    ServerState.DRAINING,
    ServerState.IDLE,
)


class Fleet:
    """Owns the servers by name, in the order of their entries.

    Args:
        make: Makes the server of an entry, which is not started yet.
        changed: Set when a boundary has something to take.
    """

    def __init__(
        self, make: Callable[[ServerSpec], Server], publish: Publish, changed: asyncio.Event
    ) -> None:
        self.specs: tuple[ServerSpec, ...] = ()
        self._make = make
        self._publish = publish
        self._changed = changed
        self._servers: dict[str, Server] = {}
        self._restarts: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._gone: list[Server] = []  # removed, and their tools are still registered
        self._going: set[Server] = set()  # removed, and their calls may still run
        self._stopped = False

    def get(self, name: str) -> Server:
        """Give a server.

        Raises:
            UsageError: there is none of this name; names the nearest.
        """
        server = self._servers.get(name)
        if server is None:
            raise UsageError(f"There is no server {name!r}", fix=did_you_mean(name, self._servers))
        return server

    def all(self) -> tuple[Server, ...]:
        """Give every server, in the order of the configuration."""
        return tuple(self._servers[spec.name] for spec in self.specs if spec.name in self._servers)

    def reconcile(self, specs: Iterable[ServerSpec]) -> tuple[Step, ...]:
        """Begin what leads to ``specs``; gives the steps."""
        before, self.specs = self.specs, tuple(specs)
        steps = reconcile(before, self.specs)
        for step in steps:
            self._take_step(step)
        return steps

    async def restart(self, name: str) -> None:
        """Replace a server: the new one is up before the old one goes; asked twice, done once.

        Raises:
            UsageError: there is no such server, or it is disabled.
            ServerError: the new one failed, and the old one serves on; or it is not wanted any
                more.
        """
        server = self.get(name)
        if server.state is ServerState.DISABLED:
            raise UsageError(f"{name} is disabled", fix=f"Enable it first: /mcp enable {name}")
        running = self._restarts.get(name)
        if running is None or running.done():
            if server.spec.restart.exclusive and server.connection is not None:
                what = f"{name}: the old server is stopped first, then the new one starts"
                why = "its entry sets restart.exclusive; running calls end as unknown"
                self._publish(Noticed(level=Level.INFO, what=what, why=why))
            running = asyncio.create_task(server.restart(), name=f"restart {name}")
            running.add_done_callback(_seen)
            self._restarts[name] = running
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            if not running.cancelled():  # whoever asked gave up
                raise
            what = f"The restart of {name} was ended: it was switched off or removed meanwhile"
            raise ServerError(what, server=name, stage="spawn") from None

    def retry(self, name: str) -> None:
        """Start a server that failed or waits for something, unless it runs by now.

        Raises:
            UsageError: there is no such server.
        """
        server = self.get(name)
        if server.state not in (*_RUNNING, ServerState.DISABLED):
            self._spawn(self._again(server))

    def retrust(self, name: str) -> None:
        """Ask again whether a server may start; one held back while it serves is replaced now.

        Raises:
            UsageError: there is no such server.
        """
        server = self.get(name)
        live = server.connection
        if live is not None and _differs(live.recipe.spec, server.spec):
            self._spawn(self._replace(server))
        else:
            self.retry(name)

    async def wake(self, names: Iterable[str]) -> None:
        """Bring up those of ``names`` that sleep, and wait for what comes of it."""
        found = [self._servers[name] for name in names if name in self._servers]
        await asyncio.gather(*(_wake(server) for server in found))

    async def set_enabled(self, name: str, enabled: bool) -> None:
        """Start or stop a server for this session; running calls may end first.

        Raises:
            UsageError: there is no such server.
        """
        server = self.get(name)
        if enabled and server.state not in _RUNNING:
            server.spec = dataclasses.replace(server.spec, disabled=False)
            await self._again(server)
        elif not enabled and server.state is not ServerState.DISABLED:
            await self._disable(server)

    async def restarted(self) -> None:
        """Wait for the restarts under way."""
        running = [task for task in self._restarts.values() if not task.done()]
        if running:
            await asyncio.wait(running)

    def take(self) -> tuple[tuple[str, Tools], ...]:
        """Give the tools of each server whose list changed; () of one that is gone."""
        gone, self._gone = self._gone, []
        taken: list[tuple[str, Tools]] = [(server.spec.name, ()) for server in gone]
        for server in gone:
            self._going.add(server)
            self._spawn(self._remove(server))
        for name, server in self._servers.items():
            tools = server.take()
            if tools is not None:
                taken.append((name, tools))
        return tuple(taken)

    async def stop(self) -> None:
        """End every server, all at once; none is started any more."""
        self._stopped = True
        await asyncio.gather(*(self._end_restart(name) for name in tuple(self._restarts)))
        servers = (*self._servers.values(), *self._gone, *self._going)
        await asyncio.gather(*(server.end() for server in servers))
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    # ---- inside

    def _take_step(self, step: Step) -> None:
        name = step.spec.name
        server = self._servers.get(name)
        if server is None:
            server = self._servers[name] = self._make(step.spec)
            server.start()
            return
        match step.act:
            case Act.STOP:
                del self._servers[name]
                self._gone.append(server)  # serves until the boundary
                self._changed.set()
                self._spawn(self._end_restart(name))
            case Act.KEEP:
                pass
            case Act.DISABLE:
                server.spec = step.spec
                self._spawn(self._disable(server))
            case Act.START if server.state is ServerState.DISABLED:
                server.spec = step.spec
                server.start()
            case _ if server.state is ServerState.DISABLED:  # for this session, by a person
                server.spec = dataclasses.replace(step.spec, disabled=True)
            case Act.ADJUST:
                server.adjust(step.spec)
            case Act.START | Act.RESTART:
                server.spec = step.spec
                self._spawn(self._replace(server))

    async def _replace(self, server: Server) -> None:
        """Restart after a change of the entry; nobody waits for it, so a failure is a notice."""
        name = server.spec.name
        running = self._restarts.get(name)
        if running is not None and not running.done():  # it may have begun with the entry before
            await asyncio.wait([running])
        gone = self._stopped or self._servers.get(name) is not server
        if gone or server.state is ServerState.DISABLED:
            return
        if server.connection is None:  # nothing to keep; a lazy one may go on sleeping
            await self._again(server)
            return
        try:
            await self.restart(name)
        except KageError as error:
            self._publish(Noticed(level=Level.ERROR, what=error.what, why=error.why, fix=error.fix))

    async def _disable(self, server: Server) -> None:
        await self._end_restart(server.spec.name)
        await server.disable()

    async def _remove(self, server: Server) -> None:
        await server.remove()
        self._going.discard(server)

    async def _again(self, server: Server) -> None:
        await server.end()
        if not self._stopped:
            server.start()

    async def _end_restart(self, name: str) -> None:
        task = self._restarts.pop(name, None)
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task])

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _wake(server: Server) -> None:
    with server.rest.using(), contextlib.suppress(StartFailed):
        await server.reach()


def _differs(old: ServerSpec, new: ServerSpec) -> bool:
    """Say whether the two start or reach something else."""
    return any(step.act is Act.RESTART for step in reconcile([old], [new]))


def _seen(task: asyncio.Task[None]) -> None:
    """Take note of the error of a restart nobody waits for any more; it was told as a state."""
    if not task.cancelled():
        task.exception()
