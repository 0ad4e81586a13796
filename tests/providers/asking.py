"""Short ways to ask a provider in a test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from kage.config.schema import ProviderSpec, Settings
from kage.core.content import Content, Text
from kage.core.messages import (
    AssistantMessage,
    Message,
    Outcome,
    Part,
    Stop,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from kage.core.tools import Risk, ServerTool, ToolSpec
from kage.providers.base import Finished, ModelEvent, ModelRequest, Provider
from kage.providers.catalog import Models
from tests.llm import ScriptedModel

READ_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["path"],
}


def tool(
    name: str = "read",
    schema: Mapping[str, Any] = READ_SCHEMA,
    *,
    description: str = "Read a file.",
    server: str = "",
) -> ToolSpec:
    origin = None
    if server:
        origin = ServerTool(
            server=server, origin="user", original=name, entry_hash="", pin="", connection=""
        )
    return ToolSpec(
        name=name, description=description, schema=schema, risk=Risk.READ, server=origin
    )


def said(text: str) -> UserMessage:
    return UserMessage(content=(Text(text),))


def answered(*parts: Part, model: str = "anthropic:scripted", stop: Stop = Stop.END):
    return AssistantMessage(parts=parts, model=model, stop=stop)


def called(call_id: str = "c1", name: str = "read", **arguments: Any) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def gave(call_id: str, *content: Content | str, outcome: Outcome = Outcome.OK) -> ToolMessage:
    parts = tuple(Text(part) if isinstance(part, str) else part for part in content)
    return ToolMessage(call_id=call_id, name="read", outcome=outcome, content=parts)


def wants(
    *messages: Message, tools: Iterable[ToolSpec] = (), system: str = "Be brief."
) -> ModelRequest:
    return ModelRequest(
        message_id="m-reply",
        system=system,
        messages=messages or (said("hello"),),
        tools=tuple(tools),
    )


def models_of(
    model: ScriptedModel, wire: str, *, name: str = "", **options: Any
) -> tuple[Models, str]:
    """Give models that know ``model``; with options it is a configured provider."""
    if not options and not name:
        return Models(Settings(), model.environ(wire), local_ports={}), f"{wire}:scripted"
    name = name or wire
    base = model.base_url if wire == "anthropic" else model.openai_url
    spec = ProviderSpec(name=name, kind=wire, base_url=base, **options)
    settings = Settings(providers={name: spec})
    return Models(settings, {}, local_ports={}), f"{name}:scripted"


async def collect(provider: Provider, request: ModelRequest) -> list[ModelEvent]:
    return [event async for event in provider.stream(request)]


def ask(
    model: ScriptedModel,
    wire: str,
    *requests: ModelRequest,
    name: str = "",
    called: str = "",
    **options: Any,
) -> list[list[ModelEvent]]:
    """Ask one provider ``requests`` in turn and give the events of each."""
    models, ident = models_of(model, wire, name=name, **options)

    async def main() -> list[list[ModelEvent]]:
        provider = models.create(called or ident)
        try:
            return [await collect(provider, request) for request in requests or (wants(),)]
        finally:
            await provider.close()

    return asyncio.run(main())


def reply(events: list[ModelEvent]) -> AssistantMessage:
    assert isinstance(events[-1], Finished)
    assert not any(isinstance(event, Finished) for event in events[:-1])
    return events[-1].message
