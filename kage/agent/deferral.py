"""Which tools a request carries: all of them, or the tools of servers only once they were found.

Definitions cost the model's window in every request. Past a share of it, tools of MCP servers are
named in the system prompt and searched with ``mcp_tools``; found ones join the END of the list,
so that what a prompt cache holds of it stays good.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kage.core.events import Noticed, Publish
from kage.core.levels import Level
from kage.core.messages import AssistantMessage, Message
from kage.core.tools import Tool, ToolSpec
from kage.providers.base import ModelInfo
from kage.providers.offline import ID as OFFLINE

SHARE = 0.05  # of the model's window
MAX_LISTED = 40  # tools of servers
WINDOW = 128_000  # tokens, where nobody knows the model's
MAX_LOADED = 100  # found tools in one request; some endpoints take 128 in all
MAX_INDEX = 1_600  # characters of names in the system prompt
_PER_TOKEN = 4  # characters

Mode = Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What the next request tells the model of its tools."""

    specs: tuple[ToolSpec, ...]
    index: str = ""  # for the system prompt; "" when every tool is listed
    deferred: int = 0  # tools that are only named


class Deferral:
    """Decides for one engine; ``load`` and ``follow`` say which deferred tools are wanted."""

    def __init__(self, mode: Mode, publish: Publish) -> None:
        self._mode = mode
        self._publish = publish
        self._loaded: dict[str, None] = {}  # names in the order they were wanted
        self._costs: dict[str, tuple[ToolSpec, int]] = {}
        self._told = False
        self._followed: Sequence[Message] = ()
        self._seen = 0
        self._made: tuple[object, ...] = ()
        self._offer = Offer(specs=())

    def load(self, names: Iterable[str]) -> None:
        """Let requests carry the definitions of ``names`` from the next turn on."""
        for name in names:
            self._loaded.setdefault(name)
        while len(self._loaded) > MAX_LOADED:
            del self._loaded[next(iter(self._loaded))]

    def follow(self, messages: Sequence[Message]) -> None:
        """Load what the conversation called by name; another conversation starts anew."""
        if messages is not self._followed:
            self._followed, self._seen = messages, 0
            self._loaded.clear()
        for message in messages[self._seen :]:
            if isinstance(message, AssistantMessage):
                self.load(call.name for call in message.calls)
        self._seen = len(messages)

    def offer(self, tools: Mapping[str, Tool], model: ModelInfo) -> Offer:
        """Give what the next request carries of ``tools``; tells once when it begins to defer."""
        made = (tools, model.id, model.window, tuple(self._loaded))
        if self._made and self._made[0] is tools and self._made[1:] == made[1:]:
            return self._offer
        specs = [tool.spec for tool in tools.values()]
        reason = self._reason(specs, model)
        if reason:
            self._offer = self._deferred(specs)
            if not self._told:
                what = f"{reason}: they are found by search (mcp_tools) instead of listed"
                why = "a request names them and carries the definitions of those in use"
                self._publish(Noticed(level=Level.INFO, what=what, why=why))
        else:
            self._offer = Offer(specs=tuple(specs))
        self._told = bool(reason)
        self._made = made
        return self._offer

    def unlisted(self, tools: Mapping[str, Tool], model: ModelInfo) -> frozenset[str]:
        """Give the names of those ``tools`` that a request would only name; tells nobody."""
        specs = [tool.spec for tool in tools.values()]
        if not self._reason(specs, model):
            return frozenset()
        return frozenset(
            spec.name for spec in specs if spec.server is not None and spec.name not in self._loaded
        )

    def _reason(self, specs: Sequence[ToolSpec], model: ModelInfo) -> str:
        """Say why tools are deferred, "" when they are not."""
        foreign = [spec for spec in specs if spec.server is not None]
        if model.id == OFFLINE or self._mode == "never" or not foreign:
            return ""
        told = f"{len(foreign):,} tools of MCP servers"
        if self._mode == "always":
            return f"{told} (defer_tools is always)"
        if len(foreign) > MAX_LISTED:
            return f"{told} are more than {MAX_LISTED}"
        window = model.window or WINDOW
        tokens = sum(map(self._cost, foreign))
        if tokens > window * SHARE:
            return f"{told} would take about {tokens:,} of the model's {window:,} tokens"
        return ""

    def _cost(self, spec: ToolSpec) -> int:
        """Estimate the tokens of a definition."""
        held = self._costs.get(spec.name)
        if held is None or held[0] is not spec:
            length = len(spec.name) + len(spec.description) + len(compact(spec.schema))
            held = (spec, length // _PER_TOKEN)
            self._costs[spec.name] = held
        return held[1]

    def _deferred(self, specs: Sequence[ToolSpec]) -> Offer:
        own = [spec for spec in specs if spec.server is None]
        foreign = {spec.name: spec for spec in specs if spec.server is not None}
        found = [foreign[name] for name in self._loaded if name in foreign]
        return Offer(
            specs=(*own, *found),
            index=index(foreign),
            deferred=len(foreign) - len(found),
        )


def compact(value: object) -> str:
    """Write JSON as it goes over the wire, or nearly so."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def index(names: Iterable[str], *, room: int = MAX_INDEX) -> str:
    """Name tools by server within ``room`` characters; each server gets its share."""
    servers: dict[str, list[str]] = {}
    for name in names:
        server, _, tool = name.partition("__")
        servers.setdefault(server, []).append(tool)
    lines: list[str] = []
    # small servers first: what they leave of their share is for the others
    for number, (server, tools) in enumerate(
        sorted(servers.items(), key=lambda item: (sum(map(len, item[1])), item[0]))
    ):
        share = room // (len(servers) - number)
        if share < len(server) + 12:
            lines.append(f"and {len(servers) - number} more servers")
            break
        line = _line(server, tools, share)
        room -= len(line) + 1
        lines.append(line)
    return "\n".join(lines)


def _line(server: str, tools: Sequence[str], room: int) -> str:
    line = f"{server} ({len(tools)}):"
    for number, tool in enumerate(tools):
        rest = f", and {len(tools) - number} more"
        last = number == len(tools) - 1
        piece = f"{', ' if number else ' '}{tool}"
        if len(line) + len(piece) + (0 if last else len(rest)) > room:
            return line + (rest if number else "")
        line += piece
    return line
