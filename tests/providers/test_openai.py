"""What compatible endpoints do in their own ways, and how kage takes it."""

from __future__ import annotations

import json

import pytest

from kage.core.content import Text
from kage.core.errors import Overloaded, ProviderError, Unreachable
from kage.core.messages import Stop, Thinking, ToolCall
from kage.core.usage import Usage
from kage.providers.base import ThinkingDelta
from tests.llm import ScriptedModel, call, fail, raw, say, thinking
from tests.providers.asking import answered, ask, called, gave, reply, said, tool, wants

TOOLS_REFUSED = (
    "Function tools with reasoning_effort are not supported for gpt-x in /v1/chat/completions. "
    "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
)


def chunks(*deltas, finish="stop", usage=None, done=True):
    """Give a whole stream made of raw deltas, as a body."""
    lines = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    if finish is not None:
        lines.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage is not None:
        lines.append({"choices": [], "usage": usage})
    text = "".join(f"data: {json.dumps(line)}\n\n" for line in lines)
    body = (text + ("data: [DONE]\n\n" if done else "")).encode()
    return fail(200, headers={"content-type": "text/event-stream"}, body=body)


def one(*deltas, **options):
    with ScriptedModel([chunks(*deltas, **options)]) as model:
        [events] = ask(model, "openai", wants(tools=[tool()]))
    return reply(events)


def part(name="", arguments="", **rest):
    function = {**({"name": name} if name else {}), "arguments": arguments}
    return {"tool_calls": [{"function": function, **rest}]}


@pytest.mark.parametrize(
    "deltas",
    [
        # whole calls, all with the same index, distinct ids
        [part("a", "{}", index=0, id="x"), part("b", '{"c": 1}', index=0, id="y")],
        # no ids, no indexes
        [part("a", "{}"), part("b", '{"c": 1}')],
        # same index, no ids
        [part("a", "{}", index=0), part("b", '{"c": 1}', index=0)],
        # ids but no index, arguments in pieces
        [part("a", "{}", id="x"), part("b", '{"c"', id="y"), part("", ": 1}", id="y")],
        # the name again in every piece
        [
            part("a", "{", index=0, id="x"),
            part("a", "}", index=0, id="x"),
            part("b", '{"c"', index=1, id="y"),
            part("b", ": 1}", index=1, id="y"),
        ],
        # arguments that are not written as text
        [part("a", {}, index=0), part("b", {"c": 1}, index=1)],
        # both in one chunk, interleaved
        [
            {
                "tool_calls": [
                    {"index": 0, "id": "x", "function": {"name": "a", "arguments": ""}},
                    {"index": 1, "id": "y", "function": {"name": "b", "arguments": '{"c"'}},
                ]
            },
            part("", "{}", index=0),
            part("", ": 1}", index=1),
        ],
    ],
)
def test_calls_are_told_apart_however_an_endpoint_streams_them(deltas):
    message = one(*deltas, finish="tool_calls")
    assert [(c.name, dict(c.arguments), c.broken) for c in message.calls] == [
        ("a", {}, None),
        ("b", {"c": 1}, None),
    ]
    assert len({c.id for c in message.calls}) == 2
    assert message.stop is Stop.TOOLS


@pytest.mark.parametrize("finish", ["stop", "function_call", "tool_use", "", "STOP"])
def test_calls_count_whatever_the_finish_reason_says(finish):
    message = one(part("a", "{}", index=0, id="x"), finish=finish)
    assert message.stop is Stop.TOOLS


def test_the_old_function_call_is_a_call():
    deltas = [
        {"function_call": {"name": "a", "arguments": "{"}},
        {"function_call": {"arguments": "}"}},
    ]
    assert one(*deltas).calls[0].name == "a"


def test_a_stream_without_done_or_without_a_reason_is_whole():
    assert one({"content": "hi"}, done=False).text == "hi"
    assert one({"content": "hi"}, finish=None).text == "hi"


def test_a_stream_without_either_has_broken_off():
    with pytest.raises(Unreachable):
        one({"content": "hi"}, finish=None, done=False)
    with pytest.raises(Unreachable):
        one(finish=None)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_shown_and_goes_back_in_its_field_within_the_chain(name):
    deltas = [{name: "because "}, {name: "so"}, part("read", '{"path": "a"}', index=0, id="x")]
    with ScriptedModel([chunks(*deltas), say("ok"), say("ok")]) as model:
        [events] = ask(model, "openai", wants(tools=[tool()]))
        message = reply(events)
        history = (said("go"), message, gave("x", "text"))
        ask(model, "openai", wants(*history), wants(*history, said("next")))
        sent = [r.messages[2] for r in model.requests[1:]]
    shown = "".join(e.text for e in events if isinstance(e, ThinkingDelta))
    assert shown == "because so"
    assert sent[0][name] == "because so"
    assert name not in sent[1]


def test_the_same_reasoning_in_two_fields_is_shown_once():
    message = one({"reasoning": "x", "reasoning_content": "x"}, {"content": "a"})
    assert [p.text for p in message.parts if isinstance(p, Thinking)] == ["x"]


def test_reasoning_of_another_model_stays_here():
    parts = (Thinking(text="x", signature="reasoning_content"), called("c1"))
    history = (said("go"), answered(*parts, model="openai:other"), gave("c1", "r"))
    with ScriptedModel([say("ok")]) as model:
        ask(model, "openai", wants(*history))
        assert "reasoning_content" not in json.dumps(model.requests[0].body)


def test_opaque_reasoning_and_signatures_go_back_with_their_call():
    details = [{"type": "reasoning.encrypted", "index": 0, "data": "ab"}]
    more = [{"type": "reasoning.encrypted", "index": 0, "data": "cd", "format": "x"}]
    extra = {"google": {"thought_signature": "sig"}}
    made = part("read", '{"path": "a"}', index=0, id="x", extra_content=extra)
    turn = chunks({"reasoning_details": details}, {"reasoning_details": more}, made)
    with ScriptedModel([turn, say("ok")]) as model:
        [events] = ask(model, "openai", wants(tools=[tool()]))
        ask(model, "openai", wants(said("go"), reply(events), gave("x", "text")))
        sent = model.requests[1].messages[2]
    assert sent["reasoning_details"][0]["data"] == "abcd"
    assert sent["tool_calls"][0]["extra_content"] == extra


def test_cached_tokens_are_counted_apart():
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 60},
    }
    assert one({"content": "a"}, usage=usage).usage == Usage(input=40, output=7, cache_read=60)


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": None}, {"prompt_tokens": -4}, {"a": "b"}])
def test_odd_usage_counts_as_nothing(usage):
    assert one({"content": "a"}, usage=usage).usage == Usage()


def test_content_in_parts_is_text_and_thinking():
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "hi"},
    ]
    message = one({"content": parts})
    assert message.text == "hi"
    assert any(isinstance(p, Thinking) and p.text == "hm" for p in message.parts)


def test_a_refusal_is_a_refusal():
    message = one({"refusal": "I will not."})
    assert message.stop is Stop.REFUSED
    assert message.text == "I will not."


def test_a_failure_named_as_finish_reason_is_an_error():
    with pytest.raises(Overloaded):
        one({"content": "a"}, finish="insufficient_system_resource")


@pytest.mark.parametrize(
    "body",
    [
        b'data: {"error": {"message": "no", "code": 400}}\n\n',
        b'data: {"error": "no"}\n\n',
        b'data: [{"error": {"message": "no", "status": "INVALID_ARGUMENT"}}]\n\n',
        b'data: {"object": "error", "message": "no"}\n\n',
        b'data: {"choices": [], "error": {"message": "no"}}\n\n',
    ],
)
def test_errors_inside_the_stream_are_told_in_every_shape(body):
    with ScriptedModel([raw(body)]) as model, pytest.raises(ProviderError) as caught:
        ask(model, "openai")
    assert "no" in caught.value.why


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": {"message": "boo", "type": "x"}}',
        b'{"error": "boo"}',
        b'[{"error": {"code": 400, "message": "boo", "status": "INVALID_ARGUMENT"}}]',
        b'{"detail": "boo"}',
        b'{"detail": [{"loc": ["body"], "msg": "boo"}]}',
        b'{"message": "boo"}',
        b"boo",
        b"<html><script>x</script><p>boo</p></html>",
        b'{"error": {"message": "Provider returned error", "metadata": {"raw": "boo"}}}',
    ],
)
def test_the_endpoints_words_are_found_in_every_shape(body):
    with ScriptedModel([fail(400, body=body)]) as model, pytest.raises(ProviderError) as caught:
        ask(model, "openai")
    assert "boo" in caught.value.why
    assert "script" not in caught.value.why


def test_tools_that_need_reasoning_off_are_sent_with_it_off():
    with ScriptedModel([fail(400, TOOLS_REFUSED), say("ok"), say("ok")]) as model:
        ask(model, "openai", wants(tools=[tool()]), wants(tools=[tool()]))
        efforts = [r.body.get("reasoning_effort") for r in model.requests]
    assert efforts == [None, "none", "none"]


def test_a_model_that_calls_tools_only_elsewhere_is_told_as_that():
    refused = fail(400, "Unsupported value: reasoning_effort does not support 'none'")
    with (
        ScriptedModel([fail(400, TOOLS_REFUSED), refused, fail(400, TOOLS_REFUSED)]) as model,
        pytest.raises(ProviderError) as caught,
    ):
        ask(model, "openai", wants(tools=[tool()]))
    assert "Responses API" in caught.value.fix


def test_the_field_for_the_length_is_the_one_the_endpoint_takes():
    refusal = fail(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.")
    with ScriptedModel([refusal, say("ok")]) as model:
        ask(model, "openai", name="mine", max_tokens=99)
        assert model.requests[0].body["max_tokens"] == 99
        assert model.requests[1].body["max_completion_tokens"] == 99


def test_an_endpoint_without_stream_options_is_asked_without():
    with ScriptedModel([fail(400, "unknown field: stream_options"), say("ok")]) as model:
        ask(model, "openai")
        assert "stream_options" not in model.requests[1].body


def test_a_model_without_tools_is_told_as_that():
    with (
        ScriptedModel([fail(400, "gemma does not support tools")]) as model,
        pytest.raises(ProviderError) as caught,
    ):
        ask(model, "openai", wants(tools=[tool()]))
    assert "cannot call tools" in caught.value.fix


@pytest.mark.parametrize(
    ("budget", "effort"), [(0, None), (1000, "low"), (8000, "medium"), (32000, "high")]
)
def test_a_thinking_budget_becomes_an_effort(budget, effort):
    with ScriptedModel([say("ok")]) as model:
        ask(model, "openai", name="mine", thinking=budget)
        assert model.requests[0].body.get("reasoning_effort") == effort


def test_no_key_is_needed_where_none_is_named_and_headers_are_sent():
    with ScriptedModel([say("ok")]) as model:
        ask(model, "openai", name="mine", headers={"X-Title": "kage"})
        headers = model.requests[0].headers
    assert "authorization" not in headers
    assert headers["x-title"] == "kage"


def test_text_only_prompts_are_plain_strings():
    with ScriptedModel([say("ok")]) as model:
        ask(model, "openai", wants(said("hello")))
        assert model.requests[0].messages[-1]["content"] == "hello"


def test_signed_thinking_of_anthropic_is_not_sent():
    history = (said("go"), answered(Thinking(text="a", signature="s"), Text("b")), said("c"))
    with ScriptedModel([say("ok")]) as model:
        ask(model, "openai", wants(*history))
        assert model.requests[0].messages[2] == {"role": "assistant", "content": "b"}


def test_thinking_and_calls_of_a_scripted_turn_survive():
    with ScriptedModel([[thinking("x"), call("read", path="a")]]) as model:
        [events] = ask(model, "openai", wants(tools=[tool()]))
    assert isinstance(reply(events).parts[-1], ToolCall)
