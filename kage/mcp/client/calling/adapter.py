"""Turn what a server offers into tools of kage: one adapter per tool, bound to one connection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kage.config.schema import ServerSpec
from kage.core.messages import Outcome
from kage.core.tools import (
    Handling,
    Invocation,
    Risk,
    ServerTool,
    Subject,
    SubjectKind,
    ToolResult,
    ToolSpec,
)
from kage.mcp.client.calling.definitions import Definition, Listing, wanted
from kage.mcp.client.calling.links import Reads, follow
from kage.mcp.client.wire.exchange import Progress
from kage.mcp.names import exposed_names

MAX_DESCRIPTION = 2048  # bytes the model reads of one tool's description, prefix included


class Caller(Protocol):
    """The connection a call goes over."""

    @property
    def id(self) -> str:
        """What decisions are bound to."""
        ...

    async def call_tool(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        progress: Progress,
        output_schema: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        """Call a tool by its name on the wire."""
        ...


class ServerToolAdapter:
    """One tool of one connection; its risk is never less than running a program."""

    def __init__(self, spec: ToolSpec, caller: Caller, server: ServerSpec) -> None:
        self._spec = spec
        self._caller = caller
        self._server = server

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return self._spec

    @property
    def original(self) -> str:
        """Its name on the wire."""
        assert self._spec.server is not None
        return self._spec.server.original

    async def run(self, call: Invocation) -> ToolResult:
        """Send one approved call; every way it can end is a result."""
        result = await self._caller.call_tool(
            self.original,
            call.arguments,
            progress=call.progress,
            output_schema=self._spec.output_schema,
        )
        caller = self._caller
        wanted = self._server.fetch_resource_links and result.outcome is Outcome.OK
        if wanted and isinstance(caller, Reads):
            return await follow(result, self._server, caller)
        return result


def adapt(
    spec: ServerSpec,
    listing: Listing,
    caller: Caller,
    *,
    entry: str,
    servers: Iterable[str],
) -> tuple[ServerToolAdapter, ...]:
    """Make a tool of each definition the person's filters leave in.

    Args:
        entry: The entry hash of what was started.
        servers: Every configured server's name, so that exposed names cannot meet.
    """
    # named before the filter, so that hiding one tool never renames another
    names = exposed_names(spec.name, (tool.name for tool in listing.tools), servers=servers)
    handling = Handling(max_output_tokens=spec.max_output_tokens, output=spec.output)
    source = _Source(spec=spec, entry=entry, connection=caller.id, handling=handling)
    return tuple(
        ServerToolAdapter(_spec(source, tool, names[tool.name]), caller, spec)
        for tool in wanted(listing.tools, spec)
    )


def cap(text: str, limit: int) -> str:
    """Cut ``text`` to ``limit`` bytes of UTF-8 at a character's end, saying so."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return text
    note = f" [cut, {len(raw)} bytes]"
    return raw[: limit - len(note)].decode("utf-8", "ignore").rstrip() + note


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """What all tools of one list have in common."""

    spec: ServerSpec
    entry: str
    connection: str
    handling: Handling


def _spec(source: _Source, tool: Definition, name: str) -> ToolSpec:
    spec = source.spec
    said = f"[server {spec.name}] {tool.description}".rstrip()
    short = cap(said, MAX_DESCRIPTION)
    return ToolSpec(
        name=name,
        description=short,
        schema=tool.schema,
        risk=Risk.EXEC,
        subject=Subject(kind=SubjectKind.ARGUMENTS),
        title=tool.title,
        server=ServerTool(
            server=spec.name,
            origin=spec.origin,
            original=tool.name,
            entry_hash=source.entry,
            pin=tool.pin,
            connection=source.connection,
            claims=tool.claims,
        ),
        output_schema=tool.output_schema,
        handling=source.handling,
        safety=spec.safety_level,
        sandbox=spec.sandbox if spec.sandbox != "none" else "",
        full_description=tool.description if short != said else "",
    )
