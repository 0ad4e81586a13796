"""What the gate decides about, what it answers, and what others need of it.

The gate itself lives in ``permissions.gate``; the tap asks ``Seals``, the engine is ``Asker``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from kage.core.tools import ToolSpec


class Mode(StrEnum):
    """What ``/permission`` sets for this session."""

    DEFAULT = "default"
    ASK = "ask"  # every call asks, grants do not count
    DENY = "deny"  # every call that would not run by default is refused


class Verdict(StrEnum):
    """What the gate says about one call."""

    ALLOW = "allow"
    DENY = "deny"


class Who(StrEnum):
    """Who or what decided."""

    PERSON = "person"
    GRANT = "grant"
    RULE = "rule"
    MODE = "mode"
    DEFAULT = "default"  # the tool's or risk's default
    HOLD = "hold"
    HOOK = "hook"
    NOBODY = "nobody"  # nobody there to ask
    CLIENT = "client"  # the program that calls kage's own server, which holds the person


class Answer(StrEnum):
    """The five answers of the approval panel, in the order of its keys."""

    YES = "yes"
    SESSION = "session"
    ALWAYS = "always"
    NO = "no"
    NO_SAY = "no_say"  # no, and say what instead


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """A call the gate is asked about; ``arguments`` are valid against the raw schema."""

    call_id: str
    tool: ToolSpec
    arguments: Mapping[str, Any]
    workspace: Path
    by_hand: bool = False  # the person made the call: its own answer, deny and holds still apply
    again: bool = False  # repeats one whose outcome is unknown: asks, whatever was allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the approval panel shows; answering it decides exactly these bytes."""

    id: str
    request: CallRequest
    digest: str  # SHA-256 of the canonical arguments
    reason: str  # why it asks, in words: "every MCP tool asks", "rule bash(git push *)"
    scopes: tuple[str, ...]  # rules "this session" and "always" could save; () = not offered
    warnings: tuple[str, ...] = ()
    red: bool = False  # touches kage's own files
    preview: str = ""  # unified diff, for write and edit
    pinned_since: str = ""  # ISO date this definition was first accepted, "" = never seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The person's answer to a question."""

    answer: Answer
    scope: int = 0  # index into Question.scopes
    say: str = ""  # what instead, for NO_SAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One answer of the gate about one call."""

    id: str
    verdict: Verdict
    who: Who
    rule: str  # the rule, grant or default named, in the one spelling
    reason: str  # a sentence for the model and the row
    digest: str
    roots: tuple[Path, ...] = ()  # paths outside the workspace this decision covers
    fix: str = ""  # for a refusal: the rule to add
    warnings: tuple[str, ...] = ()  # what scanners saw; they decide nothing

    @property
    def allowed(self) -> bool:
        """Whether the call may run."""
        return self.verdict is Verdict.ALLOW


class Asker(Protocol):
    """Somebody who can put a question to a person."""

    async def ask(self, question: Question) -> Reply:
        """Show ``question`` and wait for the answer; cancelling withdraws it."""
        ...


class Seals(Protocol):
    """What the tap asks before a ``tools/call`` is written."""

    def bind(self, connection: str, tool: str, arguments: Mapping[str, Any] | None) -> str | None:
        """Use up one open decision for exactly these bytes; its id, or None if there is none."""
        ...
