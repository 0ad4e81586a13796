"""What the model reads when a call did not end with an answer of its tool."""

from __future__ import annotations

import dataclasses

from kage.core.messages import Outcome
from kage.core.servers import Fault
from kage.core.tools import ToolResult

PROTOCOL_ERROR = "protocol error"  # begins the summary of a call the server itself refused
_CHECK = (
    "It is unknown whether it acted. Find out with a tool that only reads before you try again; "
    "kage never repeats a call by itself."
)


def timed_out(
    server: str, tool: str, *, limit: float, elapsed: float, hard: bool, sent: bool
) -> ToolResult:
    """Say that a call ran into its limit.

    Args:
        limit: The limit in seconds that ended it.
        hard: Whether it was the cap on the whole call and not the one on silence.
        sent: Whether any of it can have reached the server.
    """
    name = f"the tool {tool!r} of server {server!r}"
    if not sent:
        return ToolResult.error(
            f"The call of {name} was never sent: the server took nothing for {elapsed:.1f} s "
            f"(limit {limit:g} s). Nothing happened; you may call it again.",
            outcome=Outcome.NEVER_SENT,
        )
    kind = "the most a call may take" if hard else "no answer and no progress"
    return ToolResult.error(
        f"The call of {name} was given up after {elapsed:.1f} s (limit {limit:g} s: {kind}). "
        f"It may still be running on the server, which was told to stop. {_CHECK} "
        "If it needs longer, the person can raise "
        f"{'tool_max_time' if hard else 'tool_timeout'} for [mcp.servers.{server}].",
        outcome=Outcome.UNKNOWN,
    )


def broke_off(
    server: str, tool: str, *, fault: Fault | None, elapsed: float, sent: bool
) -> ToolResult:
    """Say that the connection went away before the answer came."""
    cause = f": {fault.what}" if fault is not None else ""
    if fault is not None and fault.why:
        cause += f" ({fault.why})"
    if not sent:
        return ToolResult.error(
            f"The call of the tool {tool!r} was never sent, the server {server!r} is gone{cause}. "
            "Nothing happened. Use another tool, or wait until the server is back.",
            outcome=Outcome.NEVER_SENT,
        )
    return ToolResult.error(
        f"The server {server!r} went away {elapsed:.1f} s into the call of its tool "
        f"{tool!r}{cause}. {_CHECK}",
        outcome=Outcome.UNKNOWN,
    )


def lost(server: str, tool: str, *, why: str, elapsed: float, sent: bool) -> ToolResult:
    """Say that this one call broke off while the connection lives on."""
    if not sent:
        return ToolResult.error(
            f"The call of the tool {tool!r} of server {server!r} was never sent: {why}. "
            "Nothing happened; you may call it again.",
            outcome=Outcome.NEVER_SENT,
        )
    return ToolResult.error(
        f"The call of the tool {tool!r} of server {server!r} broke off after {elapsed:.1f} s: "
        f"{why}. {_CHECK}",
        outcome=Outcome.UNKNOWN,
    )


def refused(server: str, tool: str, why: str) -> ToolResult:
    """Say that the tap did not let the call through."""
    return ToolResult.error(
        f"The call of the tool {tool!r} of server {server!r} was not sent: {why}.",
        outcome=Outcome.REFUSED,
    )


def stuck(server: str, tool: str, why: str) -> ToolResult:
    """Say that the call asked for input that could not be given, so it did not finish."""
    return ToolResult.error(
        f"The tool {tool!r} of server {server!r} did not finish: {why}. Give everything it needs "
        "as arguments, use another tool, or ask the person."
    )


def visited(server: str, tool: str, *, pages: int, agreed: bool) -> ToolResult:
    """Say that the person has to do something in a browser before the call can work."""
    page = "a page" if pages == 1 else f"{pages} pages"
    if not agreed:
        return ToolResult.error(
            f"The tool {tool!r} of server {server!r} did nothing: the person has to visit {page} "
            "of the server first and did not agree to. Do not call it again unless they ask for it."
        )
    return ToolResult.error(
        f"The tool {tool!r} of server {server!r} did nothing yet: the person agreed to visit "
        f"{page} of the server. Ask them to say when they are done, then call it again."
    )


def rejected(server: str, tool: str, *, code: int, message: str) -> ToolResult:
    """Say that the server answered with a protocol error."""
    result = ToolResult.error(
        f"The server {server!r} refused the call of its tool {tool!r}: "
        f"{message or 'it gave no reason'} (error {code})."
    )
    return dataclasses.replace(result, summary=f"{PROTOCOL_ERROR} {code}")


def garbled(server: str, tool: str, why: str) -> ToolResult:
    """Say that an answer came and could not be read."""
    return ToolResult.error(
        f"The server {server!r} answered the call of its tool {tool!r} with something kage cannot "
        f"read: {why}. The call itself may have worked."
    )


def not_up(server: str, tool: str, fault: Fault) -> ToolResult:
    """Say that the server could not be brought up for the call."""
    why = f" ({fault.why})" if fault.why else ""
    return ToolResult.error(
        f"The call of the tool {tool!r} was never sent, the server {server!r} is not up: "
        f"{fault.what}{why}. Nothing happened. The person can start it again: "
        f"/mcp restart {server}.",
        outcome=Outcome.NEVER_SENT,
    )


def changed(server: str, tool: str, why: str) -> ToolResult:
    """Say that what was approved is not what the server offers now."""
    return ToolResult.error(
        f"The call of the tool {tool!r} of server {server!r} was not sent: {why}. Nothing "
        "happened. Look at its definition in the next turn's list and ask for the call again.",
        outcome=Outcome.REFUSED,
    )
