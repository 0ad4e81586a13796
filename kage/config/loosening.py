"""What of a change to ``[permissions]`` lets more through than before, piece by piece.

A piece that is held is taken back out of the rules: a pattern that was added to ``allow`` is left
out, one that was removed from ``deny`` or ``ask`` stands as before.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from kage.config.schema import PermissionSpec, ToolRules, Wish
from kage.config.seen import safe
from kage.core.canonical import digest

Clause = Literal["allow", "ask", "deny", "default", "server", "mode"]
NAME = "permissions"  # of the records that keep one
_WISHES: Mapping[Wish | None, int] = {"deny": 0, "ask": 1, None: 2, "allow": 3}
_PATTERNS: tuple[Literal["allow", "ask", "deny"], ...] = ("allow", "ask", "deny")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loosening:
    """One piece: a pattern, a tool's default, a server's wish, or the mode."""

    clause: Clause
    tool: str = ""  # or the server
    value: str = ""  # the pattern that came or went, or the new word; "" for none
    before: str = ""  # the word that stood there; "" for none

    @property
    def hash(self) -> str:
        """The digest it is held by."""
        return digest({name: safe(text) for name, text in dataclasses.asdict(self).items()})

    @property
    def words(self) -> str:
        """Say for a person what it would do."""
        match self.clause:
            case "allow":
                return f"{self.tool}: allow {self.value!r} is new"
            case "ask" | "deny":
                return f"{self.tool}: {self.clause} {self.value!r} is gone"
            case _:
                key = {"default": f"{self.tool}: default", "server": f"mcp.{self.tool}"}
                named = key.get(self.clause, "mode")
                return f"{named} is {self.value or 'gone'} instead of {self.before or 'nothing'}"

    def encode(self) -> str:
        """Write it as the log keeps it."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def decode(cls, text: str) -> Loosening | None:
        """Read it back; None when it is none."""
        try:
            data = json.loads(text)
            found = cls(**data)
        except (ValueError, TypeError, RecursionError):
            return None
        sound = found.clause in get_args(Clause) and all(isinstance(v, str) for v in data.values())
        return found if sound else None


def loosenings(old: PermissionSpec, new: PermissionSpec) -> tuple[Loosening, ...]:
    """Give every piece of ``new`` that lets more through than ``old``."""
    found: list[Loosening] = []
    if old.mode not in (new.mode, "default"):
        found.append(Loosening(clause="mode", value=new.mode, before=old.mode))
    for server in {**old.servers, **new.servers}:
        before, after = old.servers.get(server), new.servers.get(server)
        if _WISHES[after or "ask"] > _WISHES[before or "ask"]:
            found.append(_word("server", server, after, before))
    tools = dict.fromkeys(rule.tool for rule in (*old.tools, *new.tools))
    for tool in tools:
        before, after = _default(old, tool), _default(new, tool)
        if _WISHES[after] > _WISHES[before]:
            found.append(_word("default", tool, after, before))
        for clause in _PATTERNS:
            had, has = _patterns(old, tool, clause), _patterns(new, tool, clause)
            more = has - had if clause == "allow" else had - has
            found += [Loosening(clause=clause, tool=tool, value=item) for item in sorted(more)]
    return tuple(found)


def held_back(spec: PermissionSpec, held: Iterable[Loosening]) -> PermissionSpec:
    """Give ``spec`` without the pieces that are held."""
    for piece in held:
        spec = _without(spec, piece)
    return spec


def _without(spec: PermissionSpec, piece: Loosening) -> PermissionSpec:
    match piece.clause:
        case "mode":
            strict = piece.before if piece.before in ("ask", "deny") else "ask"
            same = spec.mode == piece.value
            return dataclasses.replace(spec, mode=strict) if same else spec  # type: ignore[arg-type]  # checked above
        case "server":
            if (spec.servers.get(piece.tool) or "") != piece.value:
                return spec
            wish = _wish(piece.before) or "ask"
            return dataclasses.replace(spec, servers={**spec.servers, piece.tool: wish})
        case "default":
            if (_default(spec, piece.tool) or "") != piece.value:
                return spec
            tools = tuple(
                dataclasses.replace(rule, default=None) if rule.tool == piece.tool else rule
                for rule in spec.tools
            )
            extra = ToolRules(tool=piece.tool, default=_wish(piece.before))
            return dataclasses.replace(spec, tools=(*tools, extra))
        case "allow":
            tools = tuple(
                dataclasses.replace(rule, allow=tuple(p for p in rule.allow if p != piece.value))
                if rule.tool == piece.tool
                else rule
                for rule in spec.tools
            )
            return dataclasses.replace(spec, tools=tools)
        case "ask":
            extra = ToolRules(tool=piece.tool, ask=(piece.value,))
            return dataclasses.replace(spec, tools=(*spec.tools, extra))
        case "deny":
            extra = ToolRules(tool=piece.tool, deny=(piece.value,))
            return dataclasses.replace(spec, tools=(*spec.tools, extra))


def _word(clause: Clause, name: str, after: Wish | None, before: Wish | None) -> Loosening:
    return Loosening(clause=clause, tool=name, value=after or "", before=before or "")


def _wish(word: str) -> Wish | None:
    return word if word in ("ask", "allow", "deny") else None  # type: ignore[return-value]  # one of them


def _default(spec: PermissionSpec, tool: str) -> Wish | None:
    """Give the strictest default that is written for a tool."""
    written = [rule.default for rule in spec.tools if rule.tool == tool and rule.default]
    return min(written, key=lambda wish: _WISHES[wish], default=None)


def _patterns(spec: PermissionSpec, tool: str, clause: Literal["allow", "ask", "deny"]) -> set[str]:
    return {item for rule in spec.tools if rule.tool == tool for item in getattr(rule, clause)}
