"""What happens between two turns: queued changes apply, then the next turn is put together."""

from __future__ import annotations

import asyncio
import datetime
import platform
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from kage.agent.mcp_status import active
from kage.agent.prompt import system_prompt
from kage.agent.reloading import Change
from kage.config.schema import ServerSpec
from kage.core.commands import SignInCommand
from kage.core.events import Noticed, Publish, ToolsSwapped
from kage.core.levels import Level
from kage.core.pins import HeldChange
from kage.core.servers import ServerStatus
from kage.core.tools import Tool
from kage.tools.registry import Registry

_LOOK = "The model reads them as the server's words. To leave the server out: /mcp disable"


class Swap(Protocol):
    """All tools a server offers from now on."""

    @property
    def server(self) -> str:
        """Its name."""
        ...

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools; () when it is gone."""
        ...


class Servers(Protocol):
    """What the engine needs of ``mcp.client.manager.Manager``."""

    @property
    def changed(self) -> asyncio.Event:
        """Set when ``apply`` has something to do."""
        ...

    def start(self, specs: Iterable[ServerSpec]) -> None:
        """Start the eager ones side by side; return at once."""
        ...

    def reconcile(self, specs: Iterable[ServerSpec]) -> Iterable[Change]:
        """Begin whatever leads to ``specs``; tell what."""
        ...

    async def settled(self) -> None:
        """Wait until the first start of each server came to something."""
        ...

    def retrust(self, name: str) -> None:
        """Ask again whether a server may start."""
        ...

    def held(self) -> tuple[HeldChange, ...]:
        """Give every definition that waits for the person."""
        ...

    def repin(self) -> None:
        """Compare all definitions with what the person knows by now."""
        ...

    async def restart(self, name: str) -> None:
        """Bring a new one up before the old one goes."""
        ...

    async def set_enabled(self, name: str, enabled: bool) -> None:
        """Start or stop one."""
        ...

    async def sign_in(self, command: SignInCommand) -> None:
        """Sign in to one, or out."""
        ...

    async def set_log_level(self, name: str, level: str) -> None:
        """Choose what one tells of itself."""
        ...

    async def apply(self, *, wait_restarts: bool = True) -> Iterable[Swap]:
        """Give the tool lists that changed."""
        ...

    def statuses(self) -> tuple[ServerStatus, ...]:
        """Tell how each is doing."""
        ...

    def log(self, name: str) -> tuple[str, ...]:
        """Give the last stderr lines of one."""
        ...

    def instructions(self) -> tuple[tuple[str, str], ...]:
        """Give (server, text) of connected ones."""
        ...

    async def stop(self) -> None:
        """End all of them."""
        ...


class Boundary:
    """Moves what the servers changed into the registry, one caller at a time."""

    def __init__(
        self,
        servers: Servers,
        registry: Registry,
        publish: Publish,
        *,
        workspace: Path,
        cwd: Path,
        own: tuple[Tool, ...] = (),
    ) -> None:
        self._servers = servers
        self._registry = registry
        self._publish = publish
        self._workspace = workspace
        self._cwd = cwd
        self._busy = asyncio.Lock()
        self._own = own  # tools about servers, there while any server is
        self._owned = False
        self._looked_at: set[str] = set()  # instructions the scanners saw

    async def apply(self, *, wait_restarts: bool) -> None:
        """Swap in every tool list that changed and tell what is new."""
        async with self._busy:
            for swap in await self._servers.apply(wait_restarts=wait_restarts):
                self._swap(swap)
            wanted = active(self._servers.statuses())
            if wanted is not self._owned:
                self._owned = wanted
                self._registry.replace("mcp", self._own if wanted else ())

    def system(self, *, index: str = "") -> str:
        """Give the system prompt for the next turn; ``index`` names tools it does not list."""
        return system_prompt(
            self._workspace,
            cwd=self._cwd,
            system=platform.system(),
            today=datetime.date.today(),
            instructions=self._said(),
            index=index,
        )

    def _said(self) -> Iterator[tuple[str, str]]:
        """Give the instructions of servers; what scanners see in one is told once."""
        for server, text in self._servers.instructions():
            if text not in self._looked_at:
                from kage.permissions.scanners import instruction_flags  # with the first text

                self._looked_at.add(text)
                if flags := instruction_flags(text):
                    what = f"The instructions of {server} hold {flags[0]}"
                    self._publish(Noticed(level=Level.WARNING, what=what, fix=_LOOK))
            yield server, text

    def _swap(self, swap: Swap) -> None:
        before = self._of(swap.server)
        refused = self._registry.replace(f"server:{swap.server}", swap.tools)
        after = self._of(swap.server)
        for name in refused:
            self._publish(
                Noticed(
                    level=Level.WARNING,
                    what=f"{swap.server} offers {name}, a name that is taken; it was left out",
                )
            )
        self._publish(
            ToolsSwapped(
                server=swap.server,
                added=tuple(after.keys() - before.keys()),
                removed=tuple(before.keys() - after.keys()),
                changed=tuple(
                    name for name, tool in after.items() if name in before and before[name] != tool
                ),
            )
        )

    def _of(self, server: str) -> dict[str, str]:
        return {
            name: tool.spec.server.pin
            for name, tool in self._registry.snapshot().items()
            if tool.spec.server is not None and tool.spec.server.server == server
        }
