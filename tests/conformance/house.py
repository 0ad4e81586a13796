"""A kage put together as ``kage`` does it, in a home of its own, with one server of the suite."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import tomli_w

from kage.cli.ground import Options, ground
from kage.cli.wiring import Guard, guard, manager_for
from kage.core.content import as_text
from kage.core.events import Event, Noticed, ServerChanged
from kage.core.gate import CallRequest
from kage.core.ids import new_id
from kage.core.messages import Outcome
from kage.core.servers import ServerState, ServerStatus
from kage.core.tools import Invocation, Tool, ToolResult
from kage.mcp.client.manager import Manager
from kage.mcp.client.oauth.logins import PERSON_TIME
from kage.mcp.client.watchdog import Watchdog
from tests.conformance.person import Echo, Obliging, Visitor

SERVER = "suite"
_CALL_LIMIT = 60.0  # seconds; the suite gives up earlier


class Down(Exception):
    """The server did not come up; the text says why."""


def say(text: str) -> None:
    """Tell the suite's log something."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


class House:
    """One kage with one server; made by :func:`house`."""

    def __init__(self, manager: Manager, held: Guard, workspace: Path) -> None:
        self._manager = manager
        self._gate = held.gate(new_id("s"), None)
        self._workspace = workspace
        self.tools: dict[str, Tool] = {}  # by their name on the wire

    @property
    def status(self) -> ServerStatus:
        """How the server is doing."""
        return self._manager.statuses()[0]

    async def take(self) -> None:
        """Take over the tools, as a turn does."""
        for swap in await self._manager.apply():
            origins = ((tool.spec.server, tool) for tool in swap.tools)
            self.tools = {origin.original: tool for origin, tool in origins if origin is not None}
        say(f"{self.status.protocol}: {', '.join(self.tools) or 'no tools'}")
        for reason in self.status.dropped:
            say(f"left out: {reason}")

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """Call a tool by its name on the wire, through the gate."""
        tool, arguments = self.tools[name], dict(arguments or {})
        request = CallRequest(
            call_id=new_id("c"), tool=tool.spec, arguments=arguments, workspace=self._workspace
        )
        decision = await self._gate.decide(request)
        assert decision.allowed, decision.reason
        result = ToolResult.error("it broke off", outcome=Outcome.UNKNOWN)
        try:
            async with asyncio.timeout(_CALL_LIMIT):
                result = await tool.run(_invocation(request, self._workspace))
        finally:
            shown = as_text(result.content)
            await self._gate.finish(request, decision, result.outcome, seconds=0.0, result=shown)
            say(f"{name}: {result.outcome.value}: {shown[:300]}")
        return result


@asynccontextmanager
async def house(folder: Path, entry: Mapping[str, Any]) -> AsyncIterator[House]:
    """Give a kage whose server is up, made from the settings in ``folder``.

    Args:
        entry: Its table in the settings file.

    Raises:
        Down: the server is not up; says why.
    """
    _move_in(folder, entry)
    here = ground(Options()).sound()
    visitor, moved, watchdog = Visitor(say), asyncio.Event(), Watchdog()

    def publish(event: Event) -> None:
        if isinstance(event, Noticed):
            say(f"{event.what}: {event.why}")
        if isinstance(event, ServerChanged):
            say(f"{event.status.state.value} {_why(event.status)}")
        visitor.heard(event)
        moved.set()

    held = guard(here, publish)
    manager = manager_for(
        here,
        held,
        watchdog,
        publish,
        inherit=False,
        waits=PERSON_TIME,
        person=Obliging(),
        sampler=Echo(),
    )
    person = asyncio.create_task(visitor.stay(manager, SERVER))
    try:
        manager.start(here.settings.servers.values())
        made = House(manager, held, here.workspace)
        await _up(made, visitor, moved)
        await made.take()
        yield made
    finally:
        person.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await person
        await manager.stop()
        await watchdog.close()
        held.log.close()


async def _up(made: House, visitor: Visitor, moved: asyncio.Event) -> None:
    while made.status.state is not ServerState.CONNECTED:
        if made.status.state is ServerState.FAILED or visitor.gave_up.is_set():
            raise Down(_why(made.status))
        moved.clear()
        waiting = [asyncio.ensure_future(event.wait()) for event in (moved, visitor.gave_up)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for one in waiting:
            one.cancel()


def _move_in(folder: Path, entry: Mapping[str, Any]) -> None:
    """Point every folder kage uses below ``folder`` and write the settings there."""
    os.environ["HOME"] = str(folder)
    for kind in ("CONFIG", "DATA", "CACHE", "STATE"):
        os.environ[f"XDG_{kind}_HOME"] = str(folder / kind.lower())
    workspace = folder / "work"
    workspace.mkdir()
    os.chdir(workspace)
    settings = folder / "config" / "kage" / "config.toml"
    settings.parent.mkdir(parents=True)
    document = {
        "mcp": {"servers": {SERVER: dict(entry)}},
        "permissions": {"mcp": {SERVER: "allow"}},
    }
    settings.write_text(tomli_w.dumps(document))


def _invocation(request: CallRequest, workspace: Path) -> Invocation:
    return Invocation(
        call_id=request.call_id,
        arguments=request.arguments,
        workspace=workspace,
        roots=(workspace,),
        scratch=workspace,
        progress=lambda done, total, text: None,
    )


def _why(status: ServerStatus) -> str:
    fault = status.fault
    return f"{fault.what}: {fault.why}" if fault is not None else ""
