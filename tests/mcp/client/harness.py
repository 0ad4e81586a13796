"""A manager over real stub servers, with seals the test holds in its hand."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kage.config.schema import RestartSpec, ServerSpec
from kage.core.events import Event, ServerChanged
from kage.core.redact import Redactor
from kage.core.servers import ServerState, ServerStatus
from kage.core.tools import Invocation, Tool, ToolResult
from kage.mcp.client.manager import Manager
from kage.mcp.client.watchdog import Watchdog
from tests.stubs import stub
from tests.waiting import until


class Seals:
    """Allows every call, or none; remembers what it was asked."""

    def __init__(self, *, willing: bool = True) -> None:
        self.willing = willing
        self.asked: list[tuple[str, str, Any]] = []

    def bind(self, connection: str, tool: str, arguments: Mapping[str, Any] | None) -> str | None:
        self.asked.append((connection, tool, arguments))
        return f"d{len(self.asked)}" if self.willing else None


class TestClock:
    """A clock that stands until it is advanced; ``waiting`` are the seconds of each open wait."""

    __test__ = False

    def __init__(self) -> None:
        self._now = time.monotonic()  # connections know when they were opened
        self._sleepers: dict[asyncio.Future[None], float] = {}

    @property
    def waiting(self) -> list[float]:
        return [due - self._now for due in self._sleepers.values()]

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers[future] = self._now + seconds
        try:
            await future
        finally:
            del self._sleepers[future]

    def advance(self, seconds: float) -> None:
        """Let time pass; whoever's wait is over goes on with the loop's next step."""
        self._now += seconds
        for future, due in tuple(self._sleepers.items()):
            if due <= self._now and not future.done():
                future.set_result(None)


class Bench:
    """What one test works with."""

    def __init__(self, folder: Path, seals: Seals, environ: Mapping[str, str], **more: Any) -> None:
        self.folder = folder
        self.seals = seals
        self.events: list[Event] = []
        self.tools: dict[str, Tool] = {}
        self.times: list[tuple[float, ServerStatus]] = []
        self.redactor = Redactor()
        self.watchdog = Watchdog()
        self.manager = Manager(
            workspace=folder,
            spawner=self.watchdog,
            seals=seals,
            publish=self._publish,
            redactor=self.redactor,
            inherit_stderr=False,
            journals=folder / "journals",
            environ=environ,
            **more,
        )

    def _publish(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, ServerChanged):
            self.times.append((time.monotonic(), event.status))

    def states(self, name: str) -> list[str]:
        """Give the states a server went through, doubles dropped."""
        found: list[str] = []
        for _, status in self.times:
            if status.name == name and (not found or found[-1] != status.state.value):
                found.append(status.state.value)
        return found

    def status(self, name: str) -> ServerStatus:
        return next(status for status in self.manager.statuses() if status.name == name)

    async def up(self, *specs: ServerSpec) -> None:
        """Start servers, wait until they settled, take their tools."""
        self.manager.start(specs)
        await self.manager.settled()
        await self.apply()

    async def apply(self) -> list[str]:
        """Do what the engine does at a boundary; gives the servers that changed."""
        swaps = await self.manager.apply()
        for swap in swaps:
            gone = [name for name in self.tools if name.startswith(f"{swap.server}__")]
            for name in gone:
                del self.tools[name]
            self.tools.update({tool.spec.name: tool for tool in swap.tools})
        return [swap.server for swap in swaps]

    async def state(self, name: str, state: ServerState, **more: Any) -> None:
        await until(lambda: self.status(name).state is state, what=f"{name} {state}", **more)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        progress: Callable[[float, float | None, str], None] = lambda done, total, text: None,
    ) -> ToolResult:
        return await self.tools[name].run(
            Invocation(
                call_id="c1",
                arguments=arguments or {},
                workspace=self.folder,
                roots=(),
                scratch=self.folder,
                progress=progress,
            )
        )


@asynccontextmanager
async def bench(
    folder: Path,
    *,
    seals: Seals | None = None,
    environ: Mapping[str, str] | None = None,
    **more: Any,
) -> AsyncIterator[Bench]:
    """Give a bench; afterwards every server is stopped and no process is left.

    Args:
        more: What else the manager is given: manifests, trusted, clock.
    """
    book = Seals() if seals is None else seals  # an empty book is false, and is meant
    made = Bench(folder, book, {**os.environ, **(environ or {})}, **more)
    try:
        yield made
    finally:
        await made.manager.stop()
        await made.watchdog.close()


def spec(name: str, *options: object, of: str = "", **more: Any) -> ServerSpec:
    """Make the entry of a stub server; ``of`` names the stub when it is called otherwise."""
    command, *args = stub(of or name, *options)
    more.setdefault("timeout", 60.0)  # machines are shared
    more.setdefault("restart", RestartSpec(delay=0.05, max_delay=0.2))
    return ServerSpec(name=name, command=command, args=tuple(args), **more)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test's coroutine."""
    asyncio.run(main())


def recorded(path: Path, method: str = "") -> list[dict[str, Any]]:
    """Read what reached a stub with ``--record``."""
    if not path.exists():
        return []
    messages = [json.loads(line) for line in path.read_text().split("\n") if line.strip()]
    return [message for message in messages if not method or message.get("method") == method]


def text(result: ToolResult) -> str:
    return "\n".join(getattr(part, "text", "") or "" for part in result.content)
