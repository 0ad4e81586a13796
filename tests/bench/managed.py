"""kage's own manager of servers, alone: no model, no gate, every call is let through."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kage.config.schema import ServerSpec
from kage.core.redact import Redactor
from kage.core.tools import Invocation, Tool, ToolResult
from kage.mcp.client.manager import Manager
from kage.mcp.client.watchdog import Watchdog
from tests.bench.measure import Home
from tests.stubs import stub


class _Yes:
    """Seals that are always open: here nothing is judged."""

    def __init__(self) -> None:
        self._count = 0

    def bind(self, connection: str, tool: str, arguments: Mapping[str, Any] | None) -> str | None:
        self._count += 1
        return str(self._count)


@asynccontextmanager
async def managed(home: Home) -> AsyncIterator[Manager]:
    """Give a manager; whatever it started is ended afterwards."""
    watchdog = Watchdog()
    manager = Manager(
        workspace=home.workspace,
        spawner=watchdog,
        seals=_Yes(),
        publish=lambda event: None,
        redactor=Redactor(),
        inherit_stderr=False,
        journals=None,
        environ=home.environ(),
    )
    try:
        yield manager
    finally:
        await manager.stop()
        await watchdog.close()


def entry(name: str, of: str, *options: object, **more: Any) -> ServerSpec:
    """Make the entry of a stub server."""
    command, *args = stub(of, *options)
    return ServerSpec(name=name, command=command, args=tuple(args), **more)


async def run(tool: Tool, home: Home, call_id: str, arguments: Mapping[str, Any]) -> ToolResult:
    """Call a tool as the engine does behind the gate."""
    return await tool.run(
        Invocation(
            call_id=call_id,
            arguments=arguments,
            workspace=home.workspace,
            roots=(),
            scratch=home.workspace,
        )
    )
