"""Why a tool of a listing is offered or not, and under which name: for ``kage mcp why``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from kage.config.schema import ServerSpec
from kage.core.messages import Outcome
from kage.core.tools import ToolResult
from kage.mcp.client.calling.adapter import ServerToolAdapter, adapt
from kage.mcp.client.calling.definitions import Listing, wanted
from kage.mcp.client.wire.exchange import Progress
from kage.mcp.names import exposed_names, why_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What became of one tool on its way from a server's list to the model."""

    original: str  # the name on the wire
    exposed: str = ""  # the name models see; "" for one that is no sound tool
    renamed: str = ""  # why that is not server__original
    dropped: str = ""  # why it is no sound tool
    setting: str = ""  # the key of the entry that leaves it out
    filtered: str = ""  # how, in words


def look_up(rest: str, spec: ServerSpec, listing: Listing, servers: Iterable[str]) -> Listed | None:
    """Find the tool a person means by ``rest``, what stands behind the server; None when unknown.

    Args:
        rest: A name on the wire, or the end of an exposed one.
        spec: The entry of the server.
        listing: What it offered.
        servers: Every configured server's name.
    """
    names = exposed_names(spec.name, (tool.name for tool in listing.tools), servers=servers)
    original = rest if rest in names else None
    if original is None:
        behind = {exposed.partition("__")[2]: name for name, exposed in names.items()}
        original = behind.get(rest)
    if original is None:
        return _dropped(rest, listing)
    setting, filtered = _filtered(original, spec, listing)
    return Listed(
        original=original,
        exposed=names[original],
        renamed=why_named(spec.name, original, names, servers=servers),
        setting=setting,
        filtered=filtered,
    )


def tools_of(
    spec: ServerSpec, listing: Listing, *, entry: str, servers: Iterable[str]
) -> tuple[ServerToolAdapter, ...]:
    """Give the tools as the gate and the model would see them; calling one does nothing."""
    return adapt(spec, listing, _Nobody(), entry=entry, servers=servers)


class _Nobody:
    """No connection: these tools are only looked at."""

    id = ""

    async def call_tool(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        progress: Progress,
        output_schema: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        return ToolResult.error(f"{tool} is not connected", outcome=Outcome.NEVER_SENT)


def _dropped(rest: str, listing: Listing) -> Listed | None:
    for reason in listing.dropped:
        if reason.startswith(f"{rest}: "):
            return Listed(original=rest, dropped=reason.removeprefix(f"{rest}: "))
    return None


def _filtered(original: str, spec: ServerSpec, listing: Listing) -> tuple[str, str]:
    """Give the setting that leaves a tool out and how it does, ("", "") when none does."""
    hit = next((glob for glob in spec.disabled_tools if fnmatchcase(original, glob)), None)
    if hit is not None:
        return "disabled_tools", f"disabled_tools has {hit!r}"
    if not any(fnmatchcase(original, glob) for glob in spec.enabled_tools):
        some = ", ".join(map(repr, spec.enabled_tools)) or "nothing"
        return "enabled_tools", f"enabled_tools has only {some}"
    kept = {tool.name for tool in wanted(listing.tools, spec)}
    if original not in kept:
        most = len(wanted(listing.tools, replace(spec, max_tools=0)))
        return "max_tools", f"max_tools allows {spec.max_tools} of {most}, and it comes later"
    return "", ""
