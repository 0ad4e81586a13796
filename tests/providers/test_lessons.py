"""One odd tool, picture or thought costs that part, never the conversation."""

from __future__ import annotations

import asyncio
import json

import pytest

from kage.core.content import Image
from kage.core.errors import ProviderError
from kage.core.messages import Thinking
from tests.llm import ScriptedModel, fail, say
from tests.providers.asking import (
    answered,
    ask,
    called,
    collect,
    gave,
    models_of,
    reply,
    said,
    tool,
    wants,
)
from tests.providers.test_both_wires import PNG

TOOLS = [tool("read"), tool("odd"), tool("ls")]
BY_PLACE = {
    "anthropic": "tools.1.custom.input_schema: JSON schema is invalid",
    "openai": "Invalid schema for function 'odd': schema must have a 'type' key. context_length",
}
WIRES = pytest.mark.parametrize("wire", ["anthropic", "openai"])


def schema_of(request, name):
    found = request.tools[name]
    return found.get("input_schema") or found["function"]["parameters"]


@WIRES
def test_a_tool_whose_schema_is_refused_is_sent_plain_and_then_left_out(wire):
    refusal = fail(400, BY_PLACE[wire])
    with ScriptedModel([refusal, refusal, say("ok"), say("ok")]) as model:
        events = ask(model, wire, wants(tools=TOOLS), wants(tools=TOOLS))
        first, second, third, fourth = model.requests
    assert reply(events[0]).text == "ok"
    assert schema_of(first, "odd")["properties"]
    assert schema_of(second, "odd") == {"type": "object", "properties": {}}
    assert list(third.tools) == list(fourth.tools) == ["read", "ls"]


@WIRES
def test_a_refusal_that_goes_on_is_told(wire):
    with (
        ScriptedModel(then=fail(400, "tools.0: no")) as model,
        pytest.raises(ProviderError) as told,
    ):
        ask(model, wire, wants(tools=TOOLS))
    assert "tools.0" in told.value.why
    assert len(model.requests) <= 2 * len(TOOLS) + 2


def test_geminis_way_of_naming_a_tool_is_understood():
    refusal = fail(
        400, "* GenerateContentRequest.tools[0].function_declarations[2].parameters: bad"
    )
    with ScriptedModel([refusal, say("ok")]) as model:
        ask(model, "openai", wants(tools=TOOLS))
        assert schema_of(model.requests[1], "ls")["properties"] == {}


@WIRES
def test_a_refused_picture_does_not_hide_later_ones(wire):
    old = (said("go"), answered(called("c1")), gave("c1", Image(data=PNG, mime="image/png")))
    new = (answered(called("c2")), gave("c2", Image(data=PNG, mime="image/png")))
    with ScriptedModel([fail(400, "could not process image"), say("ok"), say("ok")]) as model:
        ask(model, wire, wants(*old), wants(*old, *new))
        counts = [json.dumps(request.body).count(PNG) for request in model.requests]
    assert counts == [1, 0, 1]


def test_refused_thinking_does_not_hide_later_thinking():
    old = (said("go"), answered(Thinking(text="a", signature="s1"), called("c1")), gave("c1", "r"))
    new = (answered(Thinking(text="b", signature="s2"), called("c2")), gave("c2", "r"))
    refusal = fail(400, "messages.1.content.0: Invalid `signature` in `thinking` block.")
    with ScriptedModel([refusal, say("ok"), say("ok")]) as model:
        ask(model, "anthropic", wants(*old), wants(*old, *new))
        sent = [json.dumps(request.body) for request in model.requests]
    assert ["s1" in text for text in sent] == [True, False, False]
    assert "s2" in sent[2]


def test_a_conversation_with_calls_and_no_tools_left_is_still_valid_for_anthropic():
    with ScriptedModel([say("ok")]) as model:
        ask(model, "anthropic", wants(said("go"), answered(called("c1")), gave("c1", "r")))
        assert model.requests[0].body["tools"]


def test_a_model_that_says_it_takes_no_pictures_gets_none():
    text_only = {"id": "scripted", "architecture": {"input_modalities": ["text"]}}
    history = (said("go"), answered(called("c1")), gave("c1", Image(data=PNG, mime="image/png")))
    with ScriptedModel([say("ok")], models=[text_only]) as model:
        models, ident = models_of(model, "openai")

        async def main():
            await models.available()
            provider = models.create(ident)
            await collect(provider, wants(*history))
            await provider.close()

        asyncio.run(main())
        assert PNG not in json.dumps(model.requests[0].body)
