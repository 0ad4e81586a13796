"""Put a conversation into the order every endpoint demands: each call, then its result, once."""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kage.core.messages import (
    AssistantMessage,
    Message,
    Outcome,
    Stop,
    ToolCall,
    ToolMessage,
    UserMessage,
)

NEVER_RUN = "This call was never run: kage stopped before it."

_LEGAL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply of the model with those of its calls that go back to it."""

    message: AssistantMessage
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What belongs to one call of the answer before; ``message`` is None when it never ran."""

    call: ToolCall
    message: ToolMessage | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """A result whose call is not in the conversation; it goes back as text."""

    message: ToolMessage


Entry = UserMessage | Answer | Result | Stray


def arrange(messages: Sequence[Message]) -> list[Entry]:
    """Order ``messages`` so that the results of an answer follow it at once.

    A call without a result gets one that says so; calls of a reply that was cut off are left
    out, since the model never finished asking.
    """
    waiting: dict[str, list[ToolMessage]] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            waiting.setdefault(message.call_id, []).append(message)
    entries: list[Entry] = []
    used: set[int] = set()
    for message in messages:
        match message:
            case UserMessage():
                entries.append(message)
            case AssistantMessage():
                entries += _answer(message, waiting, used)
            case ToolMessage():
                if id(message) not in used:
                    entries.append(Stray(message=message))
                    used.add(id(message))
                    waiting[message.call_id].remove(message)
    return entries


def _answer(
    message: AssistantMessage, waiting: dict[str, list[ToolMessage]], used: set[int]
) -> Iterable[Entry]:
    cut_off = message.stop in (Stop.INTERRUPTED, Stop.FAILED, Stop.REFUSED)
    results: list[Result] = []
    for call in message.calls:
        held = waiting.get(call.id)
        if held:
            found = held.pop(0)
            used.add(id(found))
            results.append(Result(call=call, message=found))
        elif not cut_off:
            results.append(Result(call=call, message=None))
    yield Answer(message=message, calls=tuple(result.call for result in results))
    yield from results


def failed(result: Result) -> bool:
    """Tell whether the model should see the result as an error."""
    return result.message is None or result.message.outcome is not Outcome.OK


def entry_key(entry: Entry) -> tuple[Any, ...]:
    """Name an entry for a cache of renderings; messages never change, so neither does it."""
    match entry:
        case UserMessage():
            return (entry.id,)
        case Answer():
            return (entry.message.id, tuple(call.id for call in entry.calls))
        case Result(message=None):
            return (entry.call.id, None)
        case Result(message=message) | Stray(message=message):
            assert message is not None
            return (message.id, type(entry))


def message_id(entry: Entry) -> str:
    """Give the id of the message behind an entry, "" for a result that was made up."""
    match entry:
        case UserMessage():
            return entry.id
        case Result(message=None):
            return ""
        case Answer(message=message) | Result(message=message) | Stray(message=message):
            assert message is not None
            return message.id


class CallIds:
    """Gives each call of a reply an id that is legal everywhere and new in the conversation."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._taken = {
            call.id
            for message in messages
            if isinstance(message, AssistantMessage)
            for call in message.calls
        }

    def take(self, wanted: object) -> str:
        """Give ``wanted`` if it can be used, else a new id."""
        found = wanted if isinstance(wanted, str) else ""
        while not _LEGAL_ID.fullmatch(found) or found in self._taken:
            found = f"call_{secrets.token_hex(8)}"
        self._taken.add(found)
        return found


def parse_arguments(text: str) -> tuple[Mapping[str, Any], str | None]:
    """Read the arguments of a call: (arguments, None), or ({}, ``text``) when they are broken."""
    if not text.strip():
        return {}, None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}, whole(text)
    return (value, None) if isinstance(value, dict) else ({}, whole(text))


def whole(text: str) -> str:
    """Give ``text`` with pairs of surrogates joined and lone ones replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def dump(value: object) -> str:
    """Write JSON for the wire; text that is no Unicode is made so."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()
    except (UnicodeEncodeError, ValueError):
        return json.dumps(_clean(value), ensure_ascii=False, separators=(",", ":"))
    return text


def _clean(value: object) -> object:
    match value:
        case str():
            return whole(value)
        case dict():
            return {str(_clean(key)): _clean(item) for key, item in value.items()}
        case list() | tuple():
            return [_clean(item) for item in value]
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value
