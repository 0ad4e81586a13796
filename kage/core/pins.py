"""Words for pins: what of a server is known, what is held because it changed (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol

from kage.core.definitions import INSTRUCTIONS

__all__ = [
    "INSTRUCTIONS",
    "Cause",
    "Difference",
    "HeldChange",
    "Offered",
    "PinAnswer",
    "PinnedDefinition",
    "Pins",
    "Verdict",
]

Mode = Literal["ask", "warn", "off"]


class Cause(StrEnum):
    """Why a definition is held."""

    CHANGED = "changed"  # it is another than the one that is known
    RENAMED = "renamed"  # it is new, and like one that is gone
    LOCKED = "locked"  # it is not what mcp.lock says
    DISABLED = "disabled"  # the person wants no form of it


class PinAnswer(StrEnum):
    """What a person says about a definition that is held."""

    ACCEPT = "accept"
    LATER = "later"
    REFUSE = "refuse"  # this one stays held, and is not asked about again
    DISABLE = "disable"  # and so does every later one


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedDefinition:
    """One definition as it is compared; ``written`` holds what the server wrote of it."""

    name: str  # on the wire; INSTRUCTIONS for those
    digest: str
    written: Mapping[str, Any]
    since: str = ""  # ISO date and time it was first seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What one server offers now."""

    server: str
    origin: str
    mode: Mode
    definitions: tuple[PinnedDefinition, ...]  # the tools of its list, and its instructions
    wanted: frozenset[str]  # names of those the person's filters leave in


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text in a difference."""

    kind: Literal["same", "old", "new"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One part of a definition that is another; texts are the server's, not yet sanitised."""

    part: str  # "description", "inputSchema.properties.path.type"
    pieces: tuple[Piece, ...]
    notes: tuple[str, ...] = ()  # characters nobody sees, spelled out; safe to show


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldChange:
    """One definition that waits for a person."""

    server: str
    origin: str
    name: str  # on the wire; INSTRUCTIONS for those
    digest: str  # of what it is now
    cause: Cause
    was: str = ""  # of a renamed one: the name it had
    since: str = ""  # when the form before was recorded
    lock: str = ""  # the digest mcp.lock has, where that is what speaks against it
    differences: tuple[Difference, ...] = ()
    refused: bool = False
    passed: bool = False  # told, not held: pin = "warn"

    @property
    def label(self) -> str:
        """What to call it; the name is the server's and not yet sanitised."""
        return self.name or "its instructions"

    @property
    def why(self) -> str:
        """Say why it is held, in words of kage and, of a renamed one, the name it had."""
        match self.cause:
            case Cause.CHANGED:
                day = f" since {self.since[:10]}" if self.since else ""
                why = f"changed{day}"
            case Cause.RENAMED:
                why = f"looks like {self.was} under another name"
            case Cause.LOCKED:
                why = "is not what mcp.lock says"
            case Cause.DISABLED:
                return "you disabled it"
        return f"{why}; you refused it" if self.refused else why


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What may not be offered of a server, by name, and what only has to be told."""

    held: Mapping[str, HeldChange] = field(default_factory=dict)
    told: tuple[HeldChange, ...] = ()


class Pins(Protocol):
    """Who knows the definitions; ``permissions.pins.PinBook`` is the real one."""

    def review(self, offered: Offered) -> Verdict:
        """Compare what a server offers with what is known; may take a while, from any thread."""
        ...
