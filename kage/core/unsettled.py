"""Calls of a conversation nobody knows the outcome of, until they are made again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kage.core.canonical import NotCanonical, canonical
from kage.core.messages import AssistantMessage, Message, Outcome, ToolCall, ToolMessage

_HIDDEN = b"[redacted:"  # what stands in a conversation where a call held a secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """A call and what is known about its end."""

    call: ToolCall
    result: ToolMessage

    @property
    def obstacle(self) -> str:
        """Say why it cannot be made again exactly as it was, "" when it can."""
        try:
            hidden = _HIDDEN in canonical(self.call.arguments)
        except NotCanonical:
            return "its arguments cannot be sent"
        return "its arguments held a secret, which is not kept" if hidden else ""


def unsettled(messages: Iterable[Message]) -> tuple[Unsettled, ...]:
    """Give the calls with an unknown outcome, newest first; the same call made later ends it."""
    calls: dict[str, ToolCall] = {}
    found: dict[tuple[str, bytes], Unsettled] = {}
    for message in messages:
        match message:
            case AssistantMessage():
                calls |= {call.id: call for call in message.calls}
            case ToolMessage(call_id=call_id) if call_id in calls:
                call = calls[call_id]
                key = (call.name, _spelled(call))
                if message.outcome is Outcome.UNKNOWN:
                    found.pop(key, None)
                    found[key] = Unsettled(call=call, result=message)
                elif message.outcome in (Outcome.OK, Outcome.TOOL_ERROR):
                    found.pop(key, None)
            case _:
                pass
    return tuple(reversed(found.values()))


def _spelled(call: ToolCall) -> bytes:
    try:
        return canonical(call.arguments)
    except NotCanonical:
        return call.id.encode()
