"""Chat Completions, as OpenAI and every compatible endpoint speak it: one request, one reply."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from kage.core.errors import ProviderError
from kage.providers.adapter import Adapter
from kage.providers.base import ModelEvent, ModelInfo, ModelRequest
from kage.providers.errors import Target
from kage.providers.history import CallIds, dump
from kage.providers.openai_history import OpenAIHistory
from kage.providers.openai_reply import Reply
from kage.providers.stream import drain


@dataclass(slots=True)
class _Habits:
    """What this endpoint turned out to take; learnt from its refusals, one by one."""

    limit: str  # the field for the length of a reply
    effort: str  # reasoning_effort, "" = not sent
    usage: bool = True
    swapped: bool = False
    reasoning: bool = True
    tried: set[str] = field(default_factory=set)  # efforts


class OpenAI(Adapter):
    """One model behind a Chat Completions endpoint.

    ``max_tokens`` 0 leaves the length of a reply to the endpoint; ``budget`` is the number of
    tokens the model may think, sent as an effort, 0 to leave that to the endpoint as well.
    """

    kind = "openai"

    def __init__(
        self,
        info: ModelInfo,
        target: Target,
        *,
        headers: Mapping[str, str],
        max_tokens: int = 0,
        budget: int = 0,
        vendor: bool = False,
    ) -> None:
        super().__init__(info, target, headers)
        self._max_tokens = max_tokens
        effort = ""
        if budget:
            effort = "low" if budget <= 4096 else "medium" if budget <= 16_384 else "high"
        self._habits = _Habits(
            limit="max_completion_tokens" if vendor else "max_tokens", effort=effort
        )
        self._history = OpenAIHistory(info.id, images=info.images, audio=info.audio)

    def _explained(self, error: ProviderError) -> ProviderError:
        why = error.why.lower()
        if "/v1/responses" in why:
            error.fix = (
                "This model calls tools only through the Responses API, which kage does not speak; "
                "choose another with /model or --model."
            )
        elif "support tools" in why or "support tool" in why or "tool use" in why:
            error.fix = "This model cannot call tools; choose one that can with /model or --model."
        return error

    def _adapt(self, error: ProviderError, request: ModelRequest) -> bool:
        habits, why = self._habits, error.why.lower()
        if error.status not in (400, 404, 415, 422, 500):
            return False
        if "reasoning_effort" in why or "reasoning effort" in why:
            wanted = "none" if "tools" in why and "'none'" in why else ""
            return self._use_effort(wanted)
        if habits.reasoning and "reasoning" in why and error.status != 500:
            habits.reasoning = False
        elif habits.usage and ("stream_options" in why or "include_usage" in why):
            habits.usage = False
        elif self._max_tokens and not habits.swapped and habits.limit in why:
            habits.swapped = True
            limits = ("max_tokens", "max_completion_tokens")
            habits.limit = limits[habits.limit == limits[0]]
        elif self._lessons.learn_tool(error.why, request):
            pass
        elif re.search(r"image|audio|multimodal|mmproj|vision", why):
            return self._lessons.learn_pictures(request.messages)
        else:
            return False
        return True

    def _use_effort(self, wanted: str) -> bool:
        if wanted in self._habits.tried:
            return False
        self._habits.effort = wanted
        self._habits.tried.add(wanted)
        return True

    async def _once(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        reply = Reply(self._target, CallIds(request.messages))
        body = self._body(request)
        try:
            async with aclosing(self._wire.events("/chat/completions", body)) as events:
                async for data in events:
                    for event in reply.take(data):
                        yield event
                    if reply.done:
                        await drain(events)
                        break
        except ProviderError:
            if not reply.complete:  # all was said before the connection went
                raise
        yield self._finished(request, *reply.finish())

    def _body(self, request: ModelRequest) -> bytes:
        habits = self._habits
        fields: dict[str, Any] = {"model": self._info.name, "stream": True}
        if habits.usage:
            fields["stream_options"] = {"include_usage": True}
        limits = [tokens for tokens in (self._max_tokens, request.max_tokens) if tokens]
        if limits:
            fields[habits.limit] = min(limits)
        if request.temperature is not None and not habits.effort:
            fields["temperature"] = request.temperature
        if request.stop:
            fields["stop"] = list(request.stop[:4])  # more are refused
        if habits.effort:
            fields["reasoning_effort"] = habits.effort
        tools: list[dict[str, Any]] = []
        for made, schema in self._lessons.tools(request.tools):
            function = {"name": made.name, "description": made.description, "parameters": schema}
            tools.append({"type": "function", "function": function})
        if tools:
            fields["tools"] = tools
        messages = self._history.render(
            request.system,
            request.messages,
            reasoning=habits.reasoning,
            unseen=self._lessons.unseen,
        )
        return f'{dump(fields)[:-1]},"messages":{messages}}}'.encode()
