"""What only the Messages API has: thinking, cache marks, and its rules for turns."""

from __future__ import annotations

import json

import pytest

from kage.core.content import Text
from kage.core.messages import Stop, Thinking
from kage.core.usage import Usage
from tests.llm import ScriptedModel, call, fail, say, thinking, usage
from tests.providers.asking import answered, ask, called, gave, reply, said, tool, wants

BOUND = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. "
    "The block is bound to a different conversation."
)


def blocks(request, role):
    return [b for m in request.messages if m["role"] == role for b in m["content"]]


def test_thinking_goes_back_unchanged_with_its_signature():
    turn = [thinking("deep", signature="sig=="), thinking(redacted="xyz"), call("read", path="a")]
    with ScriptedModel([turn, say("ok")]) as model:
        [events] = ask(model, "anthropic", wants(tools=[tool()]))
        message = reply(events)
        ask(model, "anthropic", wants(said("go"), message, gave(message.calls[0].id, "text")))
        sent = blocks(model.requests[1], "assistant")
    assert sent[0] == {"type": "thinking", "thinking": "deep", "signature": "sig=="}
    assert sent[1] == {"type": "redacted_thinking", "data": "xyz"}
    assert sent[2]["type"] == "tool_use"


def test_thinking_without_text_but_with_a_signature_goes_back():
    parts = (Thinking(text="", signature="s"), Text("hi"))
    with ScriptedModel([say("ok")]) as model:
        ask(model, "anthropic", wants(said("go"), answered(*parts), said("more")))
        assert blocks(model.requests[0], "assistant")[0]["thinking"] == ""


def test_thinking_of_another_model_or_without_a_signature_stays_here():
    other = answered(Thinking(text="a", signature="s"), Text("x"), model="openai:other")
    unsigned = answered(Thinking(text="a"), Text("y"))
    only = answered(Thinking(text="a", signature="s"))
    history = (said("1"), other, said("2"), unsigned, said("3"), only, said("4"))
    with ScriptedModel([say("ok")]) as model:
        ask(model, "anthropic", wants(*history))
        assert [b["type"] for b in blocks(model.requests[0], "assistant")] == ["text", "text"]


def test_at_most_four_cache_marks_are_set_and_they_move_with_the_conversation():
    history = [said("0")]
    for number in range(1, 9):
        history += [answered(called(f"c{number}")), gave(f"c{number}", "r"), said(str(number))]
    tools = [tool(), tool("ls")]
    with ScriptedModel([say("ok")]) as model:
        ask(model, "anthropic", wants(*history, tools=tools))
        body = model.requests[0].body
    assert json.dumps(body).count("cache_control") == 4
    assert "cache_control" in body["tools"][-1]
    assert "cache_control" in body["system"][-1]
    users = [m for m in body["messages"] if m["role"] == "user"]
    assert all("cache_control" in m["content"][-1] for m in users[-2:])


def test_turns_alternate_and_results_come_first():
    history = (
        answered(Text("before")),
        said("a"),
        said("b"),
        answered(called("c1")),
        said("c"),
        gave("c1", "r"),
        answered(Text("end")),
    )
    with ScriptedModel([say("ok")]) as model:
        ask(model, "anthropic", wants(*history))
        messages = model.requests[0].messages
    roles = [m["role"] for m in messages]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    [after] = [m for m in messages if m["content"][0]["type"] == "tool_result"]
    assert [b["type"] for b in after["content"]] == ["tool_result", "text"]


@pytest.mark.parametrize(
    ("name", "budget", "expected"),
    [
        ("claude-sonnet-5-5", 0, {"type": "adaptive", "display": "summarized"}),
        ("claude-opus-4-8", 0, None),
        ("claude-opus-4-8", 2000, {"type": "adaptive", "display": "summarized"}),
        ("claude-haiku-4-5-20251001", 2000, {"type": "enabled", "budget_tokens": 2000}),
        ("someone-elses", 0, None),
    ],
)
def test_thinking_is_asked_for_the_way_the_model_takes_it(name, budget, expected):
    with ScriptedModel([say("ok")]) as model:
        ask(model, "anthropic", name="anthropic", called=f"anthropic:{name}", thinking=budget)
        body = model.requests[0].body
    assert body.get("thinking") == expected
    assert ("output_config" in body) == (budget > 0 and expected["type"] == "adaptive")
    if expected and "budget_tokens" in expected:
        assert body["max_tokens"] > expected["budget_tokens"]


def test_a_budget_is_left_out_when_the_chain_of_calls_began_without_thinking():
    history = (said("go"), answered(called("c1"), model="openai:x"), gave("c1", "r"))
    with ScriptedModel(then=say("ok")) as model:
        ask(model, "anthropic", wants(*history), name="anthropic", thinking=2000)
        ask(model, "anthropic", wants(*history, said("n")), name="anthropic", thinking=2000)
        assert ["thinking" in r.body for r in model.requests] == [False, True]


def test_a_model_that_takes_no_budget_is_asked_adaptively():
    refusal = fail(
        400,
        '"thinking.type.enabled" is not supported for this model. '
        'Use "thinking.type.adaptive" and "output_config.effort".',
    )
    with ScriptedModel([refusal, say("ok"), say("ok")]) as model:
        ask(model, "anthropic", wants(), wants(), name="anthropic", thinking=2000)
        kinds = [r.body["thinking"]["type"] for r in model.requests]
    assert kinds == ["enabled", "adaptive", "adaptive"]


def test_an_endpoint_that_knows_no_thinking_is_asked_without():
    refusals = [fail(400, "thinking: adaptive only"), fail(400, "thinking: unknown field")]
    with ScriptedModel([*refusals, say("ok")]) as model:
        ask(model, "anthropic", name="anthropic", thinking=2000)
        assert "thinking" not in model.requests[-1].body


def test_thinking_bound_to_an_earlier_tool_list_is_left_out_and_the_run_goes_on():
    parts = (Thinking(text="a", signature="s"), called("c1"))
    history = (said("go"), answered(*parts), gave("c1", "r"))
    with ScriptedModel([fail(400, BOUND), say("ok")]) as model:
        [events] = ask(model, "anthropic", wants(*history))
        kinds = [b["type"] for b in blocks(model.requests[1], "assistant")]
    assert reply(events).text == "ok"
    assert kinds == ["tool_use"]


def test_refusals_that_repeat_are_told():
    with ScriptedModel(then=fail(400, BOUND)) as model, pytest.raises(Exception, match="signature"):
        ask(model, "anthropic", wants(said("go")))
    assert len(model.requests) < 6


def test_cache_use_is_counted_apart():
    turn = [say("ok"), usage(input=5, output=7, cache_read=11, cache_write=13)]
    with ScriptedModel([turn]) as model:
        [events] = ask(model, "anthropic")
    assert reply(events).usage == Usage(input=5, output=7, cache_read=11, cache_write=13)
    assert reply(events).stop is Stop.END


def test_a_token_is_sent_as_a_bearer_when_there_is_no_key():
    from kage.config.schema import Settings
    from kage.providers.catalog import Models
    from tests.providers.asking import collect

    with ScriptedModel([say("ok")]) as model:
        environ = {"ANTHROPIC_BASE_URL": model.base_url, "ANTHROPIC_AUTH_TOKEN": "tok-123456"}
        models = Models(Settings(), environ, local_ports={})

        async def main():
            provider = models.create("anthropic:scripted")
            await collect(provider, wants())
            await provider.close()

        import asyncio

        asyncio.run(main())
        headers = model.requests[0].headers
    assert headers["authorization"] == "Bearer tok-123456"
    assert "x-api-key" not in headers
    assert ("ANTHROPIC_AUTH_TOKEN", "tok-123456") in models.secrets()
