"""What a server starts by itself on one connection: its questions, its log, and what it is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from kage.config.schema import ServerSpec
from kage.mcp.client.asking.answering import Answering
from kage.mcp.client.asking.reception import Reception
from kage.mcp.client.asking.serverlog import ServerLog
from kage.mcp.client.servers.journal import Journal
from kage.mcp.client.services import Services
from kage.mcp.client.wire.exchange import Exchange
from kage.mcp.client.wire.tap import Tap

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp_types import ClientRequest

_LEVEL_WAIT = 5.0  # seconds a server gets to agree to a level

SendRequest = Callable[["ClientRequest", Exchange], Awaitable[None]]


class ServerSide:
    """Hooks itself to the tap; :meth:`settle` once the handshake is over.

    Args:
        modern: Whether the connection speaks the era without handshake.
    """

    def __init__(
        self,
        spec: ServerSpec,
        services: Services,
        tap: Tap,
        *,
        connection: str,
        journal: Journal,
        modern: Callable[[], bool],
    ) -> None:
        self._spec = spec
        self._tap = tap
        self._modern = modern
        self._client: Client | None = None
        self._send: SendRequest | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._answering = Answering(
            spec,
            services.around,
            connection=connection,
            redactor=services.redactor,
            trace=journal.trace,
        )
        self.reception = Reception(self._answering, tap.answer, modern)
        self._log = ServerLog(journal.message, spec.log_level)
        tap.reception = self.reception
        tap.notices.logged = self._log.take

    async def settle(self, client: Client, send: SendRequest) -> None:
        """Ask for the log level of the entry."""
        self._client, self._send = client, send
        if self._spec.log_level:
            await self.set_log_level(self._spec.log_level)

    async def set_log_level(self, level: str) -> bool:
        """Choose what the server tells of itself; False when it keeps no log."""
        from mcp import MCPError
        from mcp_types import SetLevelRequest, SetLevelRequestParams

        if self._client is None or self._send is None:
            return False
        self._log.level = level
        if self._modern():
            self._tap.log_level = level
            return self._client.server_capabilities.logging is not None
        if self._client.server_capabilities.logging is None:
            return False
        # the handshake era has no word for "nothing": what still comes is left out here
        params = SetLevelRequestParams(level=level or "emergency")  # type: ignore[arg-type]  # checked when read
        self._log.muted = not level
        with contextlib.suppress(MCPError, TimeoutError, ValueError):
            async with asyncio.timeout(_LEVEL_WAIT):
                await self._send(SetLevelRequest(params=params), Exchange())
        return True

    def adjust(self, spec: ServerSpec) -> None:
        """Take over an entry; a server that knows other folders by now is told."""
        old, self._spec = self._spec, spec
        self._answering.spec = spec
        if spec.log_level != old.log_level:
            self._spawn(self._level(spec.log_level))
        if spec.roots != old.roots and self._answering.roots and not self._modern():
            self._spawn(self._roots_changed())

    def end(self) -> None:
        """Withdraw every open question."""
        self.reception.end()
        for task in self._tasks:
            task.cancel()

    async def _level(self, level: str) -> None:
        await self.set_log_level(level)

    async def _roots_changed(self) -> None:
        from mcp_types import RootsListChangedNotification

        if self._client is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LEVEL_WAIT):
                    await self._client.session.send_notification(RootsListChangedNotification())

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
