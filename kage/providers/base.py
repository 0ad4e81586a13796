"""What a model is to the loop: one call that streams."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from kage.core.messages import AssistantMessage, Message
from kage.core.tools import ToolSpec
from kage.core.usage import Price


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What kage knows about one model."""

    id: str  # "provider:name"
    name: str  # as the endpoint spells it
    window: int | None = None  # tokens
    max_output: int | None = None  # tokens
    price: Price | None = None
    images: bool = False
    audio: bool = False
    thinking: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One turn: the whole conversation and what the model may call."""

    message_id: str  # the id the reply will carry
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    session_id: str = ""
    max_tokens: int = 0  # of the reply, where fewer than usual are wanted; 0 = as usual
    temperature: float | None = None
    stop: tuple[str, ...] = ()  # texts that end the reply


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More reasoning."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDelta:
    """The model is writing a call."""

    call_id: str
    name: str
    characters: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The reply is complete; always the last event of a stream."""

    message: AssistantMessage


ModelEvent = TextDelta | ThinkingDelta | CallDelta | Finished


class Provider(Protocol):
    """One model, ready to be asked."""

    @property
    def info(self) -> ModelInfo:
        """The model behind it."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask once, without retries; closing the iterator closes the connection.

        Raises:
            ProviderError: one of its subclasses where the cause is known.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
