"""Whatever an endpoint streams, it ends in a reply kage can keep, or in one clear error."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kage.core.canonical import NotCanonical, canonical
from kage.core.errors import KageError
from kage.core.messages import Thinking, ToolCall
from kage.providers import anthropic_reply, openai_reply
from kage.providers.base import CallDelta, TextDelta
from kage.providers.errors import Target, from_answer, from_stream
from kage.providers.history import CallIds
from kage.providers.stream import Joiner

TARGET = Target(provider="p", model="m", url="http://127.0.0.1/v1")
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**6),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["\ud83d", "\ude00", "{", '{"a": 1}', "text", "tool_use", "stop", "length"]),
)
KEYS = st.sampled_from(
    (
        *("type", "index", "delta", "content_block", "message", "usage", "error", "text", "id"),
        *("thinking", "signature", "partial_json", "name", "input", "data", "stop_reason"),
        *("choices", "content", "tool_calls", "function", "arguments", "finish_reason", "refusal"),
        *("reasoning", "reasoning_content", "reasoning_details", "extra_content", "role", "code"),
        *("input_tokens", "prompt_tokens", "completion_tokens", "prompt_tokens_details"),
        *("cached_tokens", "function_call", "object", "status", "metadata", "raw", "param"),
    )
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=15,
)
TYPES = st.sampled_from(
    (
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
        *("message_delta", "message_stop", "ping", "message"),
    )
)
BLOCKS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "redacted_thinking", "tool_use", "odd"])},
    optional={key: SCALARS for key in ("text", "thinking", "signature", "data", "id", "name")},
)
DELTAS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["text_delta", "thinking_delta", "signature_delta", "input_json_delta"]
        )
    },
    optional={key: SCALARS for key in ("text", "thinking", "signature", "partial_json")},
)
ANTHROPIC = st.one_of(
    st.fixed_dictionaries(
        {"type": TYPES, "index": st.integers(0, 2)},
        optional={
            "content_block": st.one_of(BLOCKS, JSON),
            "delta": st.one_of(DELTAS, JSON),
            "usage": JSON,
            "message": JSON,
        },
    ),
    JSON,
)
CALL = st.fixed_dictionaries(
    {},
    optional={
        "index": st.one_of(st.integers(0, 2), SCALARS),
        "id": SCALARS,
        "function": st.one_of(
            st.fixed_dictionaries({}, optional={"name": SCALARS, "arguments": JSON}), JSON
        ),
        "extra_content": JSON,
    },
)
DELTA = st.fixed_dictionaries(
    {},
    optional={
        "content": JSON,
        "tool_calls": st.one_of(st.lists(CALL, max_size=3), JSON),
        "reasoning": JSON,
        "reasoning_details": JSON,
        "refusal": JSON,
        "function_call": JSON,
    },
)
CHOICE = st.fixed_dictionaries(
    {}, optional={"delta": DELTA, "message": DELTA, "finish_reason": SCALARS}
)
OPENAI = st.one_of(
    st.fixed_dictionaries({"choices": st.lists(CHOICE, max_size=2)}, optional={"usage": JSON}), JSON
)


def storable(text: str) -> bool:
    text.encode()
    return True


def feed(reply, events):
    """Fold ``events`` and check what comes of it."""
    try:
        for event in events:
            for shown in reply.take(json.dumps(event)):
                if isinstance(shown, CallDelta):
                    assert storable(shown.name)
                else:
                    assert storable(shown.text)
        parts, _, usage = reply.finish()
    except KageError as error:
        assert error.what
        assert storable(str(error))
        return
    ids = [part.id for part in parts if isinstance(part, ToolCall)]
    assert len(ids) == len(set(ids))
    assert usage.context >= 0
    for part in parts:
        match part:
            case ToolCall():
                assert storable(part.name)
                assert isinstance(part.arguments, dict)
                assert storable(part.broken or "")
                with suppress(NotCanonical):  # refused before the gate
                    canonical(part.arguments)
            case Thinking():
                assert storable(part.text + part.signature + part.redacted)
            case _:
                assert storable(part.text)


@settings(max_examples=400, deadline=None)
@given(st.lists(ANTHROPIC, max_size=8))
def test_any_messages_stream_ends_well(events):
    feed(anthropic_reply.Reply(TARGET, CallIds(())), [*events, {"type": "message_stop"}])


@settings(max_examples=400, deadline=None)
@given(st.lists(OPENAI, max_size=8))
def test_any_chat_stream_ends_well(events):
    feed(
        openai_reply.Reply(TARGET, CallIds(())),
        [*events, {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}],
    )


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.none(), st.integers(300, 599)), JSON, st.dictionaries(st.text(), st.text()))
def test_any_refusal_is_one_clear_error(status, payload, headers):
    for error in (
        from_stream(TARGET, payload),
        from_answer(TARGET, status or 400, headers, json.dumps(payload)),
    ):
        assert error.what
        assert len(error.why) <= 600
        assert storable(str(error))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=20), st.lists(st.integers(0, 40)))
def test_text_comes_through_however_it_is_cut(text, cuts):
    halves = text.encode("utf-16-le")
    units = [
        halves[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(halves), 2)
    ]
    join = Joiner()
    pieces = []
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(units)], strict=True):
        pieces.append(join("".join(units[start:end])))
    assert "".join(pieces) + join.rest() == text


@pytest.mark.parametrize(
    "lines",
    [
        [
            {"choices": [{"delta": {"content": "a\ud83d"}}]},
            {"choices": [{"delta": {"content": "\ude00b"}}]},
        ],
    ],
)
def test_an_emoji_cut_in_two_is_shown_whole(lines):
    reply = openai_reply.Reply(TARGET, CallIds(()))
    shown = [event for line in lines for event in reply.take(json.dumps(line))]
    assert "".join(e.text for e in shown if isinstance(e, TextDelta)) == "a😀b"


def test_a_reply_with_endless_calls_is_one_error():
    made = [{"index": n, "id": f"c{n}", "function": {"name": "a"}} for n in range(5000)]
    with pytest.raises(KageError, match="more than"):
        openai_reply.Reply(TARGET, CallIds(())).take(
            json.dumps({"choices": [{"delta": {"tool_calls": made}}]})
        )
    reply = anthropic_reply.Reply(TARGET, CallIds(()))
    start = {"type": "content_block_start", "content_block": {"type": "tool_use", "name": "a"}}
    with pytest.raises(KageError, match="more than"):
        for index in range(5000):
            reply.take(json.dumps({**start, "index": index}))


def test_a_count_that_is_no_count_is_passed_over():
    reply = anthropic_reply.Reply(TARGET, CallIds(()))
    reply.take(json.dumps({"type": "message_delta", "usage": {"output_tokens": 10**400}}))
    reply.take(json.dumps({"type": "message_stop"}))
    assert reply.finish()[2].output == 0
