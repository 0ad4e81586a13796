"""What a server offers beside its tools, and what comes back when a person uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kage.core.content import Content

MOST_COMPLETIONS = 100  # of one question, as the protocol has it


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptArgument:
    """One argument of a prompt; its value is text."""

    name: str
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOffer:
    """A prompt a server has ready."""

    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceOffer:
    """A resource a server lists."""

    uri: str
    name: str = ""
    title: str = ""
    description: str = ""
    mime: str = ""
    size: int | None = None  # bytes, as the server says


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateOffer:
    """A family of resources: an RFC 6570 template of their URIs."""

    template: str
    name: str = ""
    title: str = ""
    description: str = ""
    mime: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """Everything one connected server offers beside its tools."""

    server: str
    prompts: tuple[PromptOffer, ...] = ()
    resources: tuple[ResourceOffer, ...] = ()
    templates: tuple[TemplateOffer, ...] = ()
    completes: bool = False  # it answers questions about arguments
    watches: bool = False  # it tells when a resource changes
    dropped: tuple[str, ...] = ()  # entries left out, each with its reason

    @property
    def counts(self) -> dict[str, int]:
        """How many of each kind, under the names of ``ServerStatus``."""
        return {
            "prompts": len(self.prompts),
            "resources": len(self.resources),
            "templates": len(self.templates),
        }


class RefKind(StrEnum):
    """What an argument to be completed belongs to."""

    PROMPT = "prompt"
    TEMPLATE = "template"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionWish:
    """One question for the values an argument can take."""

    server: str
    kind: RefKind
    name: str  # of the prompt, or the template itself
    argument: str
    value: str  # what is typed of it so far
    known: Mapping[str, str] = field(default_factory=dict)  # arguments that have their value


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMessage:
    """One message of a prompt; ``role`` is ``user`` or ``assistant``."""

    role: str
    content: tuple[Content, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledPrompt:
    """A prompt with its arguments filled in by the server."""

    server: str
    name: str
    messages: tuple[PromptMessage, ...]
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Which live connection of which entry answers, for the record of a person's own act."""

    server: str
    origin: str
    entry_hash: str
    connection: str
