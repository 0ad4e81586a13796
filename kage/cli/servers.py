"""What the ``kage mcp`` verbs share: find an entry, connect for a moment, describe."""

from __future__ import annotations

import dataclasses
import shlex
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

from kage.cli.ground import Ground
from kage.cli.logs import running as running_log
from kage.cli.trusting import desk_of
from kage.cli.wiring import Guard, guard, manager_for
from kage.config.schema import RestartSpec, ServerSpec
from kage.config.secrets import literals, shown
from kage.core.errors import UsageError
from kage.core.events import Event, Noticed
from kage.core.levels import Level
from kage.core.requests import Person
from kage.core.sanitise import clip, visible
from kage.core.servers import described
from kage.core.tools import Tool
from kage.core.trust import Standing
from kage.mcp.client.manager import Manager
from kage.mcp.client.watchdog import Watchdog
from kage.permissions.scanners import definition_flags, instruction_flags
from kage.plain.jsonl import plain
from kage.plain.text import complain, told


def entries(here: Ground) -> tuple[ServerSpec, ...]:
    """Give every entry, the user's first, then those found in project files."""
    return (*here.settings.servers.values(), *here.settings.project_servers)


def startable(here: Ground) -> list[str]:
    """Give the names of the servers that are wanted; those not trusted say so instead."""
    return [name for name, spec in here.settings.servers.items() if not spec.disabled]


def one(here: Ground, name: str) -> ServerSpec:
    """Give the entry called ``name``.

    Raises:
        UsageError: there is none; names the nearest.
    """
    found = {spec.name: spec for spec in reversed(entries(here))}
    if name in found:
        return found[name]
    from difflib import get_close_matches

    near = get_close_matches(name, found, n=1)
    hint = f"Did you mean {near[0]}?" if near else "`kage mcp list` shows them all."
    raise UsageError(f"There is no server {visible(name, single_line=True)!r}", fix=hint)


def entry(spec: ServerSpec, here: Ground) -> dict[str, Any]:
    """Describe an entry for people and JSON; nothing is expanded, and what is secret is hidden."""
    state = "enabled"
    if spec.disabled or not here.settings.mcp_enabled:
        state = "disabled"
    elif desk_of(here).standing(spec) is not Standing.TRUSTED:
        state = "untrusted"
    written = {"url": spec.url, "command": spec.command, "args": list(spec.args)}
    plain = shown(written, literals(spec.name, written))
    return {
        "name": spec.name,
        "transport": spec.transport,
        "state": state,
        "origin": spec.origin,
        "place": str(spec.place or ""),
        "endpoint": plain["url"] or shlex.join((spec.command, *plain["args"])),
        "command": spec.command,
        "args": plain["args"],
        "cwd": spec.cwd,
        "sandbox": spec.sandbox,
        "env": sorted(spec.env),
        "url": plain["url"],
        "headers": sorted(spec.headers),
        "required": spec.required,
    }


@dataclasses.dataclass(slots=True, kw_only=True)
class Up:
    """Servers that are up for the time of one verb."""

    manager: Manager
    guard: Guard
    offered: dict[str, tuple[Tool, ...]]

    def status(self, name: str) -> dict[str, Any]:
        """Give the status of one server as JSON has it."""
        return next(status for status in self.statuses() if status["name"] == name)

    def statuses(self) -> list[dict[str, Any]]:
        """Give every status as JSON has it."""
        now = time.monotonic()
        return [described(status, now=now) for status in self.manager.statuses()]

    def tools(self) -> list[dict[str, Any]]:
        """Describe every tool, raw and exposed side by side; those held say why."""
        names = [status.name for status in self.manager.statuses()]
        return [row for name in names for row in self._tools_of(name)]

    def _tools_of(self, name: str) -> list[dict[str, Any]]:
        held = {change.name: change for change in self.manager.held() if change.server == name}
        withheld = [
            (tool, held[tool.spec.server.original])
            for tool in self.manager.withheld(name)
            if tool.spec.server is not None and tool.spec.server.original in held
        ]
        return [
            *(_tool(tool) for tool in self.offered.get(name, ())),
            *(_tool(tool, held=change.why) for tool, change in withheld),
        ]

    def warnings(self, name: str) -> list[str]:
        """Give what the scanners see in the instructions and the tools of a server."""
        said = str(self.status(name)["instructions"] or "")
        return [
            *(f"instructions: {flag}" for flag in instruction_flags(said)),
            *(f"{row['raw']}: {text}" for row in self._tools_of(name) for text in row["warnings"]),
        ]

    def offers(self, name: str) -> dict[str, Any]:
        """Describe everything one server offers."""
        status = self.status(name)
        keep = ("state", "protocol", "version", "instructions", "dropped", "held", "fault")
        return {
            **{key: status[key] for key in keep},
            "tools": self._tools_of(name),
            **self.manager.offers(name),
        }


def _tool(tool: Tool, *, held: str = "") -> dict[str, Any]:
    spec = tool.spec
    origin = spec.server
    text = f"held: {held}" if held else spec.description
    return {
        "name": spec.name,
        "raw": origin.original if origin else spec.name,
        "server": origin.server if origin else "",
        "title": spec.title,
        "summary": clip(visible(text, single_line=True), 100),
        "held": held,
        "description": spec.description,
        "schema": plain(spec.schema),
        "claims": {k: v for k, v in plain(origin.claims).items() if k != "kind"} if origin else {},
        "pin": origin.pin if origin else "",
        "warnings": [str(flag) for flag in definition_flags(spec)],
    }


@asynccontextmanager
async def connected(
    here: Ground,
    names: Collection[str],
    *,
    even_disabled: bool = False,
    person: Person | None = None,
) -> AsyncIterator[Up]:
    """Start the servers called ``names``, wait until each is up or failed, stop them at the end."""
    watchdog = Watchdog()
    debug = running_log(here.redact)

    def tell(event: Event) -> None:
        if debug is not None:
            debug.heard(event)
        _tell(event)

    held = guard(here, tell)
    manager = manager_for(here, held, watchdog, tell, inherit=True, person=person)
    specs = [here.settings.servers[name] for name in names if name in here.settings.servers]
    if even_disabled:
        specs = [dataclasses.replace(spec, disabled=False) for spec in specs]
    wanted = {spec.name for spec in specs}
    rest = (spec for spec in here.settings.servers.values() if spec.name not in wanted)
    if not even_disabled:
        specs += [spec for spec in rest if spec.disabled]
    try:
        # what a verb shows is the outcome of one try, and lazy servers are looked at too
        once = RestartSpec(enabled=False)
        manager.start(dataclasses.replace(s, start="eager", restart=once) for s in specs)
        await manager.settled()
        swaps = await manager.apply()
        yield Up(manager=manager, guard=held, offered={s.server: s.tools for s in swaps})
    finally:
        await manager.stop()
        await watchdog.close()
        held.log.close()


def _tell(event: Event) -> None:
    if isinstance(event, Noticed) and event.level is not Level.INFO:
        complain(told(event.what, event.why, event.fix))
