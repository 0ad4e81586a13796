"""What front ends are told: events without secrets, also where one is cut by two pieces."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar

from kage.core import events as ev
from kage.core.content import Audio, Image, Resource
from kage.core.events import Event
from kage.core.messages import AssistantMessage, Thinking, ToolMessage
from kage.core.redact import Redactor, Stream
from kage.core.tools import ToolSpec

T = TypeVar("T")

# what things are called and found by; a secret may be as plain a word as a server's name
_NAMES = frozenset(
    ("id", "call_id", "name", "model", "signature", "redacted", "digest", "scopes", "path", "mime")
)
_OPAQUE = frozenset(("data", "blob"))  # base64 of pictures, sounds and files
_DEPTH = 200  # more than the arguments of a call may have


class Screen:
    """Takes secrets out of events; streams hold back what may be the start of one."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._reply: tuple[type[ev.TextStreamed | ev.ThinkingStreamed], str] | None = (
            None  # what streams now: kind, message
        )
        self._stream = Stream(redact)
        self._printed: dict[str, Stream] = {}  # output of running calls

    def __call__(self, event: Event) -> Iterator[Event]:
        """Give what is told for ``event``: what streams held back before it, then itself."""
        match event:
            case ev.TextStreamed() | ev.ThinkingStreamed():
                if (type(event), event.message_id) != self._reply:
                    yield from self._end_reply()
                    self._reply = type(event), event.message_id
                if text := self._stream.feed(event.text):
                    yield dataclasses.replace(event, text=text)
            case ev.CallStreamed():
                yield from self._said(self._stream.pause())  # a long call may follow
                yield event
            case ev.ToolPrinted(call_id=call_id):
                stream = self._printed.setdefault(call_id, Stream(self._redact))
                if text := stream.feed(event.text):
                    yield dataclasses.replace(event, text=text)
            case _:
                yield from self._rest(event)
                yield self._cleaned(event)

    def _rest(self, event: Event) -> Iterator[Event]:
        """Give what was held back, once nothing can come after it."""
        match event:
            case (
                ev.MessageAppended(message=AssistantMessage())
                | ev.TurnStarted()
                | ev.ModelRetried()
            ):
                yield from self._end_reply()
            case ev.RunFinished():
                yield from self._end_reply()
                self._printed.clear()  # what came after the end of its call
            case ev.MessageAppended(message=ToolMessage(call_id=call_id)):
                stream = self._printed.pop(call_id, None)
                if stream is not None and (text := stream.flush()):
                    yield ev.ToolPrinted(call_id=call_id, text=text)
            case _:
                pass

    def _end_reply(self) -> Iterator[Event]:
        yield from self._said(self._stream.flush())
        self._reply = None

    def _said(self, text: str) -> Iterator[Event]:
        if text and self._reply is not None:
            kind, message_id = self._reply
            yield kind(message_id=message_id, text=text)

    def _cleaned(self, event: Event) -> Event:
        """Replace secrets in what carries text of servers, models and the person.

        What servers ask, sign-ins and trust questions are made without secrets, and hold
        addresses and values that must come back as they are.
        """
        match event:
            case (
                ev.MessageAppended()
                | ev.ToolQueued()
                | ev.ToolStarted()
                | ev.ToolProgressed()
                | ev.ApprovalRequested()
                | ev.ModelRetried()
                | ev.RunFinished()
                | ev.PromptsWaiting()
                | ev.Noticed()
            ):
                return cleaned(event, self._redact)
            case ev.SessionOpened():
                return dataclasses.replace(event, title=self._redact(event.title))
            case _:
                return event


def without_secrets(reply: AssistantMessage, redact: Callable[[str], str]) -> AssistantMessage:
    """Give a reply as it is kept and sent again; signed reasoning goes back unchanged."""
    parts = tuple(
        part if isinstance(part, Thinking) and part.signature else cleaned(part, redact)
        for part in reply.parts
    )
    return dataclasses.replace(reply, parts=parts)


def cleaned(value: T, redact: Callable[[str], str]) -> T:
    """Give a message, an event or JSON with its texts redacted; the same one if nothing changed."""
    found: Any = _clean(value, redact, 0)  # the same shape as it had
    return found  # type: ignore[no-any-return]  # as above


def _clean(value: Any, redact: Callable[[str], str], depth: int) -> Any:  # any part of an event
    if isinstance(value, Enum | ToolSpec):
        return value
    if depth > _DEPTH:
        return "…"
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        mapped = {
            _clean(key, redact, depth + 1): _clean(item, redact, depth + 1)
            for key, item in value.items()
        }
        return mapped if mapped != value else value
    if isinstance(value, list | tuple):
        items = [_clean(item, redact, depth + 1) for item in value]
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else type(value)(items)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(value, redact, depth)
    return value


def _fields(value: Any, redact: Callable[[str], str], depth: int) -> Any:  # any dataclass
    kept = _OPAQUE if isinstance(value, Image | Audio | Resource) else frozenset()
    changed = {}
    for field in dataclasses.fields(value):
        if field.name in _NAMES or field.name in kept:
            continue
        old = getattr(value, field.name)
        new = _clean(old, redact, depth + 1)
        if new is not old:
            changed[field.name] = new
    return dataclasses.replace(value, **changed) if changed else value
