"""What a model is sent of the conversation: no secrets, and what others said between marks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from kage.agent.screening import cleaned
from kage.core.content import Content, Text
from kage.core.fence import OVERHEAD, closing, fence, opening
from kage.core.messages import Message, Outcome, ToolMessage, UserMessage
from kage.core.redact import Redactor
from kage.core.sanitise import clip
from kage.providers.base import ModelInfo
from kage.providers.offline import ID as OFFLINE

_NOTE = 200  # characters of the scanners' note
_FETCHED = {"web_fetch": "a web page"}  # tools of kage's own that bring in what others wrote


def spare(warnings: tuple[str, ...]) -> int:
    """Give how many characters are put around a result that holds ``warnings``."""
    return OVERHEAD + (_NOTE + 1 if warnings else 0)


class Outgoing:
    """Prepares the messages of requests; each one once, so that endpoints can cache them."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._ready: dict[str, tuple[Message, Message]] = {}

    def __call__(self, messages: Sequence[Message], info: ModelInfo) -> tuple[Message, ...]:
        """Give ``messages`` as ``info`` is sent them; without a model they stay as they are."""
        if info.id == OFFLINE:
            return tuple(messages)
        ready = {}
        for message in messages:
            known = self._ready.get(message.id)
            if known is None or known[0] is not message:
                known = message, self._prepared(message)
            ready[message.id] = known
        self._ready = ready
        return tuple(out for _, out in ready.values())

    def _prepared(self, message: Message) -> Message:
        match message:
            case UserMessage(written=str(line)) if line:
                return cleaned(_prompt(message), self._redact)
            case UserMessage():
                return cleaned(message, self._redact)
            case ToolMessage():
                return _result(message)
            case _:
                return message


def _result(message: ToolMessage) -> ToolMessage:
    """Put what a server returned between marks; what kage itself says of a call needs none.

    The id of the message is its mark: it was made at random after the server had answered.
    """
    source = message.server or _FETCHED.get(message.name, "")
    if not source or message.outcome in (Outcome.REFUSED, Outcome.NEVER_SENT):
        return message
    note = _note(message.warnings)
    parts = _between(message.content, source, message.id)
    return dataclasses.replace(message, content=((Text(note),) if note else ()) + parts)


def _prompt(message: UserMessage) -> UserMessage:
    """Say whose words a prompt of a server is, which the person chose by its name."""
    server = message.written.removeprefix("/").partition(":")[0]
    head = Text(f"The person chose a prompt of the MCP server {server}. Its words are:")
    return dataclasses.replace(
        message, content=(head, *_between(message.content, server, message.id))
    )


def _between(parts: tuple[Content, ...], source: str, mark: str) -> tuple[Content, ...]:
    match parts:
        case (Text(text),):
            return (Text(fence(text, source=source, mark=mark)),)
        case (Text(first), *rest):
            head = Text(f"{opening(source, mark)}\n{first}")
            return (head, *rest, Text(closing(mark)))
        case _:
            return (Text(opening(source, mark)), *parts, Text(closing(mark)))


def _note(warnings: tuple[str, ...]) -> str:
    if not warnings:
        return ""
    return clip(f"[kage: the scanners saw here {'; '.join(warnings)}. Tell the person.]", _NOTE)
