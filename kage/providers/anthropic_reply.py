"""Fold the events of a Messages stream into events of kage's and a finished reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kage.core.content import Text
from kage.core.messages import Part, Stop, Thinking, ToolCall
from kage.core.usage import Usage
from kage.providers.base import CallDelta, ModelEvent, TextDelta, ThinkingDelta
from kage.providers.errors import Target, from_stream
from kage.providers.history import CallIds, parse_arguments, whole
from kage.providers.stream import (
    MAX_CALLS,
    MAX_TOKENS,
    Joiner,
    broke_off,
    read_event,
    too_many,
    tool_name,
)

_STOPS = {
    "end_turn": Stop.END,
    "stop_sequence": Stop.END,
    "tool_use": Stop.TOOLS,
    "max_tokens": Stop.LENGTH,
    "model_context_window_exceeded": Stop.LENGTH,
    "refusal": Stop.REFUSED,
}


@dataclass(slots=True)
class _Block:
    kind: str
    text: list[str] = field(default_factory=list)
    signature: str = ""
    redacted: str = ""
    id: str = ""
    name: str = ""
    size: int = 0
    given: Mapping[str, Any] | None = None  # input that came whole
    join: Joiner = field(default_factory=Joiner)


class Reply:
    """Folds the events of one stream."""

    def __init__(self, target: Target, ids: CallIds) -> None:
        self._target = target
        self._ids = ids
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, int] = {}
        self._stop: str | None = None
        self._calls = 0
        self.done = False

    def take(self, data: str) -> Sequence[ModelEvent]:
        """Fold one event and give what is to be shown of it."""
        event = read_event(self._target, data)
        match event.get("type"):
            case "message_start":
                message = event.get("message")
                if isinstance(message, dict):
                    self._count(message.get("usage"))
            case "content_block_start":
                return self._start(_index(event), event.get("content_block"))
            case "content_block_delta":
                return self._delta(_index(event), event.get("delta"))
            case "message_delta":
                delta = event.get("delta")
                if isinstance(delta, dict) and isinstance(delta.get("stop_reason"), str):
                    self._stop = delta["stop_reason"]
                self._count(event.get("usage"))
            case "message_stop":
                self.done = True
            case "error":
                raise from_stream(self._target, event)
            case "message":  # the endpoint does not stream
                return self._whole(event)
            case None if "error" in event:
                raise from_stream(self._target, event)
            case _:
                pass
        return ()

    def _whole(self, message: Mapping[str, Any]) -> Sequence[ModelEvent]:
        events: list[ModelEvent] = []
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else []):
            events += self._start(index, block)
        self._count(message.get("usage"))
        stop = message.get("stop_reason")
        self._stop = stop if isinstance(stop, str) else "end_turn"
        self.done = True
        return events

    def _count(self, usage: object) -> None:
        if isinstance(usage, dict):
            for key, value in usage.items():
                if isinstance(value, int) and self._usage.get(key, 0) <= value < MAX_TOKENS:
                    self._usage[key] = value

    def _start(self, index: int, data: object) -> Sequence[ModelEvent]:
        if not isinstance(data, dict):
            return ()
        block = self._blocks[index] = _Block(kind=str(data.get("type", "")))
        match block.kind:
            case "text":
                return self._delta(index, {"type": "text_delta", "text": data.get("text")})
            case "thinking":
                block.signature = whole(_string(data.get("signature")))
                thought = {"type": "thinking_delta", "thinking": data.get("thinking")}
                return self._delta(index, thought)
            case "redacted_thinking":
                block.redacted = whole(_string(data.get("data")))
            case "tool_use":
                self._calls += 1
                if self._calls > MAX_CALLS:
                    raise too_many(self._target)
                block.id = self._ids.take(data.get("id"))
                block.name = tool_name(data.get("name"))
                given = data.get("input")
                block.given = given if isinstance(given, dict) and given else None
                return (CallDelta(call_id=block.id, name=block.name, characters=0),)
            case _:
                pass
        return ()

    def _delta(self, index: int, data: object) -> Sequence[ModelEvent]:
        block = self._blocks.get(index)
        if block is None or not isinstance(data, dict):
            return ()
        match data.get("type"):
            case "text_delta" if text := block.join(_string(data.get("text"))):
                block.text.append(text)
                return (TextDelta(text),)
            case "thinking_delta" if text := block.join(_string(data.get("thinking"))):
                block.text.append(text)
                return (ThinkingDelta(text),)
            case "signature_delta":
                block.signature += whole(_string(data.get("signature")))
            case "input_json_delta" if text := _string(data.get("partial_json")):
                block.text.append(text)
                block.size += len(text)
                return (CallDelta(call_id=block.id, name=block.name, characters=block.size),)
            case _:
                pass
        return ()

    def finish(self) -> tuple[tuple[Part, ...], Stop, Usage]:
        """Give the parts, why it ended and what it cost.

        Raises:
            Unreachable: the stream ended before the reply did.
        """
        if not self.done and self._stop is None:
            raise broke_off(self._target)
        stop = _STOPS.get(self._stop or "", Stop.END)
        parts: list[Part] = []
        ordered = [self._blocks[index] for index in sorted(self._blocks)]
        for block in ordered:
            cut = stop is Stop.LENGTH and block is ordered[-1]
            part = _part(block, cut=cut)
            if part is not None and not (stop is Stop.REFUSED and isinstance(part, ToolCall)):
                parts.append(part)
        if stop in (Stop.END, Stop.TOOLS):
            called = any(isinstance(part, ToolCall) for part in parts)
            stop = Stop.TOOLS if called else Stop.END
        usage = Usage(
            input=self._usage.get("input_tokens", 0),
            output=self._usage.get("output_tokens", 0),
            cache_read=self._usage.get("cache_read_input_tokens", 0),
            cache_write=self._usage.get("cache_creation_input_tokens", 0),
        )
        return tuple(parts), stop, usage


def _part(block: _Block, *, cut: bool) -> Part | None:
    text = "".join(block.text) + block.join.rest()
    match block.kind:
        case "text":
            return Text(text) if text else None
        case "thinking" | "redacted_thinking":
            if not (text or block.signature or block.redacted):
                return None
            return Thinking(text=text, signature=block.signature, redacted=block.redacted)
        case "tool_use":
            arguments, broken = parse_arguments(text)
            if not text and block.given is not None:
                arguments = block.given
            elif not text and cut:
                broken = ""  # cut off before the first argument
            return ToolCall(id=block.id, name=block.name, arguments=arguments, broken=broken)
        case _:
            return None


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index", 0)
    return index if isinstance(index, int) else 0


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
