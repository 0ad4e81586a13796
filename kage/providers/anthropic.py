"""Anthropic's Messages API: one request, its stream folded into events and a finished message."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from kage.core.errors import ProviderError
from kage.core.messages import ToolMessage
from kage.providers.adapter import Adapter
from kage.providers.anthropic_history import AnthropicHistory
from kage.providers.anthropic_reply import Reply
from kage.providers.base import (
    ModelEvent,
    ModelInfo,
    ModelRequest,
)
from kage.providers.errors import Target
from kage.providers.history import CallIds, dump
from kage.providers.lessons import ANYTHING
from kage.providers.stream import drain
from kage.providers.table import Thought, thought_of

VERSION = "2023-06-01"
_CACHE = {"cache_control": {"type": "ephemeral"}}
# the API wants tools to be defined wherever a conversation has calls
_NO_TOOLS: dict[str, Any] = {
    "name": "no_tool",
    "description": "There are no tools at the moment; do not call this.",
    "input_schema": ANYTHING,
}


@dataclass(slots=True)
class _Habits:
    """What this endpoint turned out not to take; learnt from its refusals, one by one."""

    thought: Thought
    caching: bool = True


class Anthropic(Adapter):
    """One model behind a Messages endpoint.

    ``budget`` is the number of tokens the model may think, 0 when the person did not ask for it;
    models that always think are asked to say what they think either way.
    """

    kind = "anthropic"

    def __init__(
        self,
        info: ModelInfo,
        target: Target,
        *,
        headers: Mapping[str, str],
        max_tokens: int,
        budget: int = 0,
    ) -> None:
        super().__init__(info, target, {"anthropic-version": VERSION, **headers})
        self._max_tokens = max_tokens
        self._budget = budget
        self._habits = _Habits(thought=thought_of(info.name))
        self._history = AnthropicHistory(info.id)

    def _adapt(self, error: ProviderError, request: ModelRequest) -> bool:
        if error.status not in (400, 422):
            return False
        why, habits = error.why.lower(), self._habits
        if "signature" in why and "thinking" in why:
            return self._lessons.learn_thinking(request.messages)  # what stands before it changed
        if habits.thought is Thought.BUDGET and "thinking" in why and "adaptive" in why:
            habits.thought = Thought.ADAPTIVE
        elif habits.thought is not Thought.NEVER and re.search(
            r"\bthinking\b|output_config|\beffort\b", why
        ):
            habits.thought = Thought.NEVER
        elif habits.caching and "cache_control" in why:
            habits.caching = False
        elif self._lessons.learn_tool(error.why, request):
            pass
        elif "image" in why:
            return self._lessons.learn_pictures(request.messages)
        else:
            return False
        return True

    async def _once(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        reply = Reply(self._target, CallIds(request.messages))
        async with aclosing(self._wire.events("/messages", self._body(request))) as events:
            async for data in events:
                for event in reply.take(data):
                    yield event
                if reply.done:
                    await drain(events)
                    break
        yield self._finished(request, *reply.finish())

    def _body(self, request: ModelRequest) -> bytes:
        habits = self._habits
        fields: dict[str, Any] = {
            "model": self._info.name,
            "max_tokens": self._max_tokens,
            "stream": True,
            **self._thinking(request),
        }
        if request.max_tokens and "thinking" not in fields:
            fields["max_tokens"] = min(self._max_tokens, request.max_tokens)
        if request.temperature is not None and "thinking" not in fields:
            fields["temperature"] = min(1.0, request.temperature)
        if request.stop:
            fields["stop_sequences"] = [text for text in request.stop if text.strip()]
        mark = _CACHE if habits.caching else {}
        if request.system.strip():
            fields["system"] = [{"type": "text", "text": request.system, **mark}]
        tools: list[dict[str, Any]] = [
            {"name": made.name, "description": made.description, "input_schema": schema}
            for made, schema in self._lessons.tools(request.tools)
        ]
        if not tools and any(isinstance(m, ToolMessage) for m in request.messages):
            tools.append(_NO_TOOLS)
        if tools:
            tools[-1] = {**tools[-1], **mark}
            fields["tools"] = tools
        messages = self._history.render(
            request.messages,
            forgotten=self._lessons.forgotten,
            unseen=self._lessons.hidden(request.messages, images=self._info.images),
            caching=habits.caching,
        )
        return f'{dump(fields)[:-1]},"messages":{messages}}}'.encode()

    def _thinking(self, request: ModelRequest) -> dict[str, Any]:
        budget = self._budget
        match self._habits.thought:
            case Thought.ALWAYS:
                fields: dict[str, Any] = {"thinking": {"type": "adaptive", "display": "summarized"}}
            case Thought.ADAPTIVE if budget:
                fields = {"thinking": {"type": "adaptive", "display": "summarized"}}
            case Thought.BUDGET if budget and self._history.thinks_last(request.messages):
                tokens = max(1024, min(budget, self._max_tokens - 1024))
                return {
                    "thinking": {"type": "enabled", "budget_tokens": tokens},
                    "max_tokens": max(self._max_tokens, tokens + 1024),
                }
            case _:
                return {}
        if budget:
            effort = "low" if budget <= 4096 else "medium" if budget <= 16_384 else "high"
            fields["output_config"] = {"effort": effort}
        return fields
