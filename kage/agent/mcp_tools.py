"""The model's own way to find tools of MCP servers: by words, or by exact name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kage.agent.deferral import compact
from kage.core.content import Text
from kage.core.errors import ToolError
from kage.core.sanitise import clip
from kage.core.tools import Invocation, Risk, Tool, ToolResult, ToolSpec

MAX_FOUND = 10  # tools one search gives
_MAX_TEXT = 600  # characters of a description in a result
_MAX_SCHEMA = 6_000  # characters of a schema in a result; the definition has all of it
_MAX_ANSWER = 40_000  # characters
_MAX_LISTED = 300  # names in one list
_MAX_WORDS = 20  # of a query
_SHORT = 3  # letters; shorter words are too often part of others
_NEARLY = 0.25  # of the best score, to be given beside it
_WORD = re.compile(r"[a-z]+|[0-9]+|[^\W\d_a-z]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class McpTools:
    """Searches the tools of servers; what it finds is loaded.

    Args:
        tools: Every tool there is now, by exposed name.
        found: Told the names a search gave.
    """

    def __init__(
        self, tools: Callable[[], Mapping[str, Tool]], found: Callable[[Iterable[str]], None]
    ) -> None:
        self._tools = tools
        self._found = found
        self._index: tuple[object, tuple[_Entry, ...]] = (None, ())
        self._spec = ToolSpec(
            name="mcp_tools",
            title="Find MCP tools",
            description=(
                "Find tools of MCP servers by words and get their full definitions; the tools "
                "found can be called from then on. Say in query what you want to do, or give "
                "exact names. Without query it lists names."
            ),
            schema=texts_schema(
                query="Words for what the tool should do, or names of tools.",
                server="Only tools of this server.",
            ),
            risk=Risk.READ,
        )

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return self._spec

    async def run(self, call: Invocation) -> ToolResult:
        """Search, or list names.

        Raises:
            ToolError: there is no such server.
        """
        query, server = text_of(call.arguments, "query"), text_of(call.arguments, "server")
        entries = self._entries()
        if server:
            entries = _of_server(entries, server)
        if not query.strip():
            return _listed(entries)
        found = search(entries, query)
        if not found:
            text = f"None of {len(entries)} tools fits {clip(query, 100)!r}. Try other words."
            return ToolResult(content=(Text(text),), summary="none found")
        self._found(spec.name for spec in found)
        return ToolResult(content=(Text(_definitions(found)),), summary=f"{len(found)} found")

    def _entries(self) -> tuple[_Entry, ...]:
        tools = self._tools()
        if self._index[0] is not tools:
            specs = (tool.spec for tool in tools.values())
            self._index = (tools, tuple(_Entry(spec) for spec in specs if spec.server is not None))
        return self._index[1]


class _Entry:
    """One tool with its words, taken apart once."""

    __slots__ = ("_names", "_said", "spec")

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec
        self._names: frozenset[str] | None = None
        self._said = ""

    def points(self, word: str) -> int:
        """Say how well one word fits: the name counts more than the description."""
        if self._names is None:
            self._names = frozenset(_words(f"{self.spec.name} {self.spec.title}"))
            self._said = self.spec.description.lower()
        if word in self._names:
            return 4
        if len(word) > _SHORT and any(_akin(word, name) for name in self._names):
            return 2
        return 1 if len(word) >= _SHORT and word in self._said else 0


def search(entries: Iterable[_Entry], query: str, *, most: int = MAX_FOUND) -> list[ToolSpec]:
    """Give the tools that fit ``query`` best; exact names in it come alone, in its order.

    A word few tools have says more than one that many have.
    """
    held = list(entries)
    exact = {entry.spec.name: entry.spec for entry in held}
    named = [exact[name] for name in dict.fromkeys(re.split(r"[\s,;]+", query)) if name in exact]
    if named:
        return named[:most]
    scores = [0.0] * len(held)
    for word in list(dict.fromkeys(_words(query)))[:_MAX_WORDS]:
        points = [entry.points(word) for entry in held]
        hits = sum(1 for number in points if number)
        weight = math.log(1 + len(held) / hits) if hits else 0.0
        scores = [score + number * weight for score, number in zip(scores, points, strict=True)]
    least = max(scores, default=0.0) * _NEARLY
    order = sorted(range(len(held)), key=lambda place: -scores[place])  # stable
    return [
        held[place].spec for place in order[:most] if scores[place] > 0 and scores[place] >= least
    ]


def _akin(word: str, name: str) -> bool:
    """Say whether two words begin alike: issue and issues, create and created."""
    return len(name) > _SHORT and (name.startswith(word) or word.startswith(name))


def _definitions(found: Sequence[ToolSpec]) -> str:
    parts: list[str] = []
    room = _MAX_ANSWER
    for spec in found:
        schema = compact(spec.schema)
        if len(schema) > _MAX_SCHEMA:
            schema = f"{schema[:_MAX_SCHEMA]}… (cut; the tool's definition has it whole)"
        part = f"{spec.name}\n{clip(spec.description, _MAX_TEXT)}\narguments: {schema}"
        room -= len(part)
        if room < 0:
            part = f"{spec.name}\n(its definition is long; you have it from the next turn on)"
        parts.append(part)
    return "\n\n".join(parts)


def _listed(entries: Sequence[_Entry]) -> ToolResult:
    lines = [
        f"{entry.spec.name}: {clip(' '.join(_own_words(entry.spec).split()), 80)}"
        for entry in entries[:_MAX_LISTED]
    ]
    if len(entries) > _MAX_LISTED:
        left = len(entries) - _MAX_LISTED
        lines.append(f"… and {left} more: give a query, or a server")
    text = "\n".join(lines) or "No server offers a tool now. mcp_status says how servers are doing."
    return ToolResult(content=(Text(text),), summary=f"{len(entries)} tools")


def _own_words(spec: ToolSpec) -> str:
    """Give the description without the name of the server, which the tool's name says."""
    server = spec.server.server if spec.server is not None else ""
    return spec.description.removeprefix(f"[server {server}]").strip()


def _of_server(entries: Sequence[_Entry], server: str) -> tuple[_Entry, ...]:
    fitting = tuple(
        entry
        for entry in entries
        if entry.spec.server is not None and entry.spec.server.server == server
    )
    if not fitting:
        names = {entry.spec.server.server for entry in entries if entry.spec.server is not None}
        raise no_server(server, sorted(names))
    return fitting


def no_server(server: str, names: Sequence[str]) -> ToolError:
    """Make the error for a server that is not there, with the nearest name."""
    from difflib import get_close_matches

    near = get_close_matches(server[:64], names, n=1)
    fix = f"Did you mean {near[0]}?" if near else "mcp_status lists the servers."
    return ToolError(f"No server {clip(server, 64)!r} offers tools now", fix=fix)


def _words(text: str) -> list[str]:
    return _WORD.findall(_CAMEL.sub(" ", text).lower())


def texts_schema(**properties: str) -> dict[str, Any]:
    """Make the schema of optional text arguments, each with its description."""
    return {
        "type": "object",
        "properties": {
            name: {"type": "string", "description": text} for name, text in properties.items()
        },
        "additionalProperties": False,
    }


def text_of(arguments: Mapping[str, Any], name: str) -> str:
    """Give the text argument ``name``, "" without it.

    Raises:
        ToolError: it is no text.
    """
    value = arguments.get(name, "")
    if not isinstance(value, str):
        raise ToolError(f"The argument {name!r} must be text")
    return value
