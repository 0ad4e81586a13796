"""What a conversation is made of: what the person said, what the model said, what tools gave.

Each message is finished and never changes. ``id`` is its place in the session file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kage.core.content import Content, Text
from kage.core.ids import new_id
from kage.core.usage import Usage

if TYPE_CHECKING:
    from kage.core.undo import Effect


class Outcome(StrEnum):
    """How a tool call ended (DESIGN section 3)."""

    OK = "ok"
    TOOL_ERROR = "tool_error"
    REFUSED = "refused"
    NEVER_SENT = "never_sent"
    UNKNOWN = "unknown"


class Stop(StrEnum):
    """Why the model stopped."""

    END = "end"
    TOOLS = "tools"
    LENGTH = "length"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """The model's reasoning; ``signature`` is opaque and goes back unchanged.

    ``redacted`` holds reasoning the provider sent encrypted; then ``text`` is empty.
    """

    text: str
    signature: str = ""
    redacted: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call the model asked for; ``name`` is the exposed name.

    ``broken`` holds the raw text when the model's arguments were no JSON object; then
    ``arguments`` is empty and the call is answered with an error.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]  # JSON
    broken: str | None = None


Part = Text | Thinking | ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """What the person sent; ``written`` is the line they wrote for a server's prompt.

    Then the words in ``content`` are the server's, who may not act in the person's name.
    """

    content: tuple[Content, ...]
    written: str = ""
    id: str = field(default_factory=lambda: new_id("m"))


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """What the model answered; a partial answer has ``stop`` interrupted or failed."""

    parts: tuple[Part, ...]
    model: str  # "provider:name"
    stop: Stop
    usage: Usage = field(default_factory=Usage)
    id: str = field(default_factory=lambda: new_id("m"))

    @property
    def text(self) -> str:
        """The answer's text without reasoning and calls."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls asked for, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """What one call gave back; every call of an answer gets exactly one."""

    call_id: str
    name: str
    outcome: Outcome
    content: tuple[Content, ...]
    seconds: float = 0.0
    summary: str = ""  # a few words for the row: "18 matches"
    diff: str = ""  # unified diff, for edits
    structured: Any = None  # structuredContent beside ``content``, any JSON value
    server: str = ""  # whose words ``content`` is; "" for kage's own tools
    warnings: tuple[str, ...] = ()  # what scanners saw in it
    effect: Effect | None = None  # what it did to files, as far as kage looked
    id: str = field(default_factory=lambda: new_id("m"))


Message = UserMessage | AssistantMessage | ToolMessage
