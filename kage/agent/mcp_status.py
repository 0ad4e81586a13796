"""The model's own view of MCP servers: how each is doing, since when and why, without secrets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from kage.agent.mcp_tools import no_server, text_of, texts_schema
from kage.core.content import Text
from kage.core.sanitise import clip
from kage.core.servers import ServerState, ServerStatus
from kage.core.tools import Invocation, Risk, ToolResult, ToolSpec

_MAX_WHY = 300  # characters of a server's own words


class McpStatus:
    """Tells how servers are doing."""

    def __init__(self, statuses: Callable[[], Sequence[ServerStatus]]) -> None:
        self._statuses = statuses
        self._spec = ToolSpec(
            name="mcp_status",
            title="State of MCP servers",
            description=(
                "See how each MCP server is doing: its state and since when, how many tools it "
                "has, and why it failed. Use it when a tool is missing or a call went wrong."
            ),
            schema=texts_schema(server="Only this server."),
            risk=Risk.READ,
        )

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return self._spec

    async def run(self, call: Invocation) -> ToolResult:
        """Describe the servers.

        Raises:
            ToolError: there is no such server.
        """
        server = text_of(call.arguments, "server")
        statuses = self._statuses()
        if server:
            names = [status.name for status in statuses]
            statuses = [status for status in statuses if status.name == server]
            if not statuses:
                raise no_server(server, names)
        now = time.monotonic()
        text = "\n".join(_told(status, now) for status in statuses) or "No server is configured."
        return ToolResult(content=(Text(text),), summary=f"{len(statuses)} servers")


def active(statuses: Iterable[ServerStatus]) -> bool:
    """Say whether there is any server to ask about."""
    return any(status.state is not ServerState.DISABLED for status in statuses)


def _told(status: ServerStatus, now: float) -> str:
    """Describe a server without its command, address or stderr: those can hold secrets."""
    age = _age(now - status.since)
    words = [f"{status.name}: {status.state.value} for {age}", f"{status.tools} tools"]
    if status.protocol:
        words.append(f"{status.transport}, protocol {status.protocol}")
    if status.attempt:
        words.append(f"try {status.attempt} of {status.attempts}")
    lines = [", ".join(words)]
    if status.fault is not None:
        why = f": {status.fault.why}" if status.fault.why else ""
        lines.append(f"  {status.fault.stage.value}: {clip(status.fault.what + why, _MAX_WHY)}")
    lines += [f"  held, until the person looked at it: {clip(held, 200)}" for held in status.held]
    if status.dropped:
        lines.append(f"  {len(status.dropped)} tools left out: {clip(status.dropped[0], 200)}")
    return "\n".join(lines)


def _age(seconds: float) -> str:
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h"
