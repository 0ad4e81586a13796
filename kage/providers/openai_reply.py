"""Fold the chunks of a Chat Completions stream into events and a finished reply."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kage.core.content import Text
from kage.core.messages import Part, Stop, Thinking, ToolCall
from kage.core.usage import Usage
from kage.providers.base import CallDelta, ModelEvent, TextDelta, ThinkingDelta
from kage.providers.errors import Target, from_stream
from kage.providers.history import CallIds, parse_arguments
from kage.providers.openai_history import DETAILS, EXTRA, REASONING
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
    "length": Stop.LENGTH,
    "max_tokens": Stop.LENGTH,
    "model_length": Stop.LENGTH,
    "content_filter": Stop.REFUSED,
    "safety": Stop.REFUSED,
    "refusal": Stop.REFUSED,
}
_FAILED = ("error", "insufficient_system_resource", "server_error")


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    wire_id: str  # as the endpoint spells it
    index: int | None
    text: list[str] = field(default_factory=list)
    size: int = 0
    extra: str = ""  # opaque JSON that goes back with the call

    @property
    def whole(self) -> bool:
        """Whether its arguments are complete JSON."""
        if not self.text or not self.text[-1].rstrip().endswith("}"):
            return False  # asked for often, so the cheap answer comes first
        return parse_arguments("".join(self.text))[1] is None


class Reply:
    """Folds the chunks of one stream; tolerant, since no two endpoints agree."""

    def __init__(self, target: Target, ids: CallIds) -> None:
        self._target = target
        self._ids = ids
        self._text: list[str] = []
        self._join, self._join_thought = Joiner(), Joiner()
        self._thought: dict[str, list[str]] = {}
        self._details: dict[tuple[Any, Any], dict[str, Any]] = {}
        self._calls: list[_Call] = []
        self._usage = Usage()
        self._finish: str | None = None
        self._refused = False
        self.done = False

    @property
    def complete(self) -> bool:
        """Whether the model said why it stopped."""
        return self._finish is not None

    def take(self, data: str) -> Sequence[ModelEvent]:
        """Fold one chunk and give what is to be shown of it.

        Raises:
            ProviderError: the chunk is an error, or garbage.
        """
        if data.strip() == "[DONE]":
            self.done = True
            return ()
        chunk = read_event(self._target, data)
        if chunk.get("error"):
            raise from_stream(self._target, chunk)
        if isinstance(chunk.get("usage"), dict):
            self._usage = _usage(chunk["usage"])
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            if chunk.get("object") == "error":
                raise from_stream(self._target, chunk)
            return ()
        return self._choice(choices[0])

    def _choice(self, choice: Mapping[str, Any]) -> Sequence[ModelEvent]:
        events: list[ModelEvent] = []
        delta = choice.get("delta")
        whole = choice.get("message")  # the endpoint does not stream
        if not isinstance(delta, dict):
            delta = whole if isinstance(whole, dict) else {}
        events += self._thinking(delta)
        events += self._content(delta.get("content"))
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refused = True
            events += self._content(refusal)
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                events += self._call(call)
        if isinstance(delta.get("function_call"), dict):
            events += self._call({"index": 0, "function": delta["function_call"]})
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            if finish in _FAILED:
                raise from_stream(self._target, {"error": choice.get("error") or finish})
            self._finish = finish
        elif whole is not None:
            self._finish = "stop"
        return events

    def _content(self, content: object) -> Iterable[ModelEvent]:
        if isinstance(content, str):
            if text := self._join(content):
                self._text.append(text)
                yield TextDelta(text)
        elif isinstance(content, list):  # parts, as Mistral sends them
            for part in content:
                if not isinstance(part, dict):
                    continue
                if part.get("type") == "thinking":
                    yield from self._thinking({"reasoning_content": _joined(part.get("thinking"))})
                else:
                    yield from self._content(part.get("text"))

    def _thinking(self, delta: Mapping[str, Any]) -> Iterable[ModelEvent]:
        for name in REASONING:
            piece = delta.get(name)
            if isinstance(piece, str) and piece:
                if text := self._join_thought(piece):
                    self._thought.setdefault(name, []).append(text)
                    yield ThinkingDelta(text)
                break  # some send the same text in both
        details = delta.get(DETAILS)
        for part in details if isinstance(details, list) else ():
            if isinstance(part, dict):
                self._detail(part)

    def _detail(self, part: Mapping[str, Any]) -> None:
        held = self._details.setdefault((str(part.get("type")), str(part.get("index"))), {})
        for key, value in part.items():
            if key in ("text", "summary", "data") and isinstance(value, str):
                held[key] = held.get(key, "") + value
            elif value is not None:
                held[key] = value

    def _call(self, data: Mapping[str, Any]) -> Iterable[ModelEvent]:
        function = data.get("function")
        function = function if isinstance(function, dict) else data
        name = tool_name(function.get("name"))
        call = self._slot(data, name)
        if name and not call.name:
            call.name = name
        arguments = function.get("arguments")
        if isinstance(arguments, dict):  # whole, and not even written as text
            arguments = json.dumps(arguments)
        if isinstance(arguments, str) and arguments:
            call.text.append(arguments)
            call.size += len(arguments)
        if data.get("extra_content"):
            call.extra = json.dumps(data["extra_content"])
        yield CallDelta(call_id=call.id, name=call.name, characters=call.size)

    def _slot(self, data: Mapping[str, Any], name: str) -> _Call:
        """Find the call a delta belongs to; a new one when it names a call that is not open."""
        index = data.get("index")
        index = index if isinstance(index, int) else None
        wire_id = data.get("id")
        wire_id = wire_id if isinstance(wire_id, str) else ""
        held: _Call | None = None
        if index is not None:
            held = next((c for c in reversed(self._calls) if c.index == index), None)
        elif wire_id:
            held = next((c for c in self._calls if c.wire_id == wire_id), None)
            if held is None and not name and self._calls:
                held = self._calls[-1]
        elif self._calls:
            held = self._calls[-1]
        if held is not None and name and held.name:
            other_id = bool(wire_id and held.wire_id and wire_id != held.wire_id)
            if other_id or (not wire_id and held.whole):
                held = None  # parallel calls that all carry the same index, or none
        if held is None:
            if len(self._calls) >= MAX_CALLS:
                raise too_many(self._target)
            held = _Call(id=self._ids.take(wire_id), name=name, wire_id=wire_id, index=index)
            self._calls.append(held)
        return held

    def finish(self) -> tuple[tuple[Part, ...], Stop, Usage]:
        """Give the parts, why it ended and what it cost.

        Raises:
            Unreachable: the stream ended before the reply did.
        """
        said = bool(self._text or self._calls or self._thought)
        if self._finish is None and not (self.done and said):
            raise broke_off(self._target)
        stop = _STOPS.get((self._finish or "").lower(), Stop.END)
        if self._refused:
            stop = Stop.REFUSED
        parts: list[Part] = [
            Thinking(text="".join(text), signature=name) for name, text in self._thought.items()
        ]
        if self._details:
            details = json.dumps(list(self._details.values()))
            parts.append(Thinking(text="", signature=DETAILS, redacted=details))
        if text := "".join(self._text) + self._join.rest():
            parts.append(Text(text))
        if stop is not Stop.REFUSED:
            for call in self._calls:
                cut = stop is Stop.LENGTH and call is self._calls[-1]
                parts += _parts(call, cut=cut)
        if stop is Stop.END and any(isinstance(part, ToolCall) for part in parts):
            stop = Stop.TOOLS
        return tuple(parts), stop, self._usage


def _parts(call: _Call, *, cut: bool) -> Iterable[Part]:
    text = "".join(call.text)
    arguments, broken = parse_arguments(text)
    if cut and not text:
        broken = ""  # cut off before the first argument
    if call.extra:
        yield Thinking(text="", signature=EXTRA + call.id, redacted=call.extra)
    yield ToolCall(id=call.id, name=call.name, arguments=arguments, broken=broken)


def _joined(value: object) -> str:
    if isinstance(value, list):
        return "".join(_joined(part.get("text")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else ""


def _usage(data: Mapping[str, Any]) -> Usage:
    def number(source: object, *names: str) -> int:
        if isinstance(source, dict):
            for name in names:
                value = source.get(name)
                if isinstance(value, int) and 0 < value < MAX_TOKENS:
                    return value
        return 0

    prompt = number(data, "prompt_tokens", "input_tokens")
    details = data.get("prompt_tokens_details", data.get("input_tokens_details"))
    read = number(details, "cached_tokens") or number(data, "prompt_cache_hit_tokens")
    written = number(details, "cache_write_tokens", "cache_creation_tokens")
    return Usage(
        input=max(0, prompt - read - written),
        output=number(data, "completion_tokens", "output_tokens"),
        cache_read=read,
        cache_write=written,
    )
