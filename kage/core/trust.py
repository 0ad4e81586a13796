"""Words for trust in what would start a process or open a connection (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Standing(StrEnum):
    """Whether an entry may start, and if not, why."""

    TRUSTED = "trusted"
    NEW = "new"  # nobody was asked yet
    CHANGED = "changed"  # an earlier form of it is trusted
    HELD = "held"  # the person's own file was changed while a kage ran
    NEVER = "never"  # the person does not want it here


class TrustAnswer(StrEnum):
    """What a person says about an entry."""

    TRUST = "trust"
    LATER = "later"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One entry as it would start now; ``entry_hash`` covers everything that decides that."""

    name: str
    origin: str  # "user", a project's real path, or "plugin:<name>"
    entry_hash: str
    seen: Mapping[str, str] = field(default_factory=dict)  # what a person sees of it, unexpanded


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One part of an entry that is another than what was trusted; "" where there is none."""

    part: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustQuestion:
    """Everything a person needs to see before an entry may start; texts are not yet sanitised."""

    identity: Identity
    standing: Standing
    place: str  # file and line
    variables: tuple[tuple[str, bool], ...] = ()  # every one it reads, and whether it is set
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The server's name."""
        return self.identity.name
