"""What a server asks of the person, and what the person says to it.

``mcp.client`` asks a ``Person``; the engine is one when there is somebody at the screen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # loaded when a server asks, not before the first frame
    from kage.core.forms import Form
    from kage.core.messages import AssistantMessage, Message
    from kage.core.tools import ToolSpec


class Action(StrEnum):
    """The three answers of elicitation."""

    ACCEPT = "accept"
    DECLINE = "decline"  # the person said no
    CANCEL = "cancel"  # the person said nothing


class Purpose(StrEnum):
    """What a form is for."""

    ELICITATION = "elicitation"  # the server wants to know something
    PROMPT = "prompt"  # the server wants the model asked this
    ANSWER = "answer"  # the model answered, and the server would get this


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRequest:
    """A form to fill in for a server; texts of the server are not yet sanitised."""

    id: str
    server: str
    message: str
    form: Form
    purpose: Purpose = Purpose.ELICITATION
    call: str = ""  # the exposed name of the call it belongs to, "" when none runs
    facts: tuple[str, ...] = ()  # what else there is to know, in kage's words
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRequest:
    """A page a server wants the person to visit; kage never opens it by itself."""

    id: str
    server: str
    message: str
    url: str  # http or https
    host: str  # as it is looked up, punycode spelled out
    call: str = ""
    facts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


ServerRequest = FormRequest | UrlRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReply:
    """What the person answered; ``values`` only with ``ACCEPT`` of a form."""

    action: Action
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)  # may hold secrets


class Person(Protocol):
    """Somebody a server's question can be put to."""

    async def answer(self, request: ServerRequest) -> RequestReply:
        """Show ``request`` and wait; cancelling withdraws it."""
        ...

    def completed(self, server: str, request_id: str) -> None:
        """Tell that what the person did in the browser reached the server."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """A request to the model on behalf of a server, as the person let it through."""

    system: str
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    tools: tuple[ToolSpec, ...] = ()


class Sampler(Protocol):
    """The model of the session, as a server may ask it."""

    @property
    def model(self) -> str:
        """The model that would answer, "" when there is none."""
        ...

    async def sample(self, request: SampleRequest) -> AssistantMessage:
        """Ask once.

        Raises:
            KageError: no model is connected, or it failed.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """What is about to be handed to a server in answer to its questions; for the log."""

    server: str
    origin: str
    connection: str
    tool: str  # the original name of the call it belongs to, "" when there is none
    decision: str  # the decision that let the call through, "" without one
    kind: str  # "elicitation", "url", "sampling", "roots" or "answers" (of one round)
    action: str
    by_person: bool  # or by kage's own rule
    keys: tuple[str, ...]  # names of fields or questions; never values
    digest: str  # SHA-256 of the canonical answer
    sealed: Mapping[str, Any] | None = None  # a follow-up that may be written once


class Receipts(Protocol):
    """Records what is handed to a server, before it is; the decision log does."""

    async def handed(self, answer: Handed) -> None:
        """Write the record; opens the seal of ``answer.sealed``."""
        ...
