"""What holds for both wire formats."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from contextlib import aclosing

import pytest

from kage.core.content import Audio, Image, Resource, ResourceLink, Text
from kage.core.errors import (
    AuthFailed,
    ContextTooLong,
    KageError,
    Overloaded,
    ProviderError,
    UnknownModel,
    Unreachable,
)
from kage.core.messages import Outcome, Stop, ToolCall
from kage.core.usage import Usage
from kage.providers.base import CallDelta, TextDelta, ThinkingDelta
from kage.providers.errors import NoConnection
from kage.providers.retry import ATTEMPTS, delay
from tests.llm import (
    ScriptedModel,
    call,
    call_broken,
    call_with,
    drop,
    fail,
    hold,
    raw,
    say,
    stop,
    stream_error,
    thinking,
    too_long,
    usage,
)
from tests.providers.asking import (
    answered,
    ask,
    called,
    gave,
    models_of,
    reply,
    said,
    tool,
    wants,
)

WIRES = pytest.mark.parametrize("wire", ["anthropic", "openai"])
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)


def failure(model: ScriptedModel, wire: str, **options) -> KageError:
    with pytest.raises(KageError) as caught:
        ask(model, wire, **options)
    return caught.value


@WIRES
def test_text_thinking_calls_and_usage_arrive(wire):
    turn = [
        thinking("let me see"),
        say("I will read."),
        call("read", path="ä.txt"),
        usage(input=100, output=20, cache_read=40),
    ]
    with ScriptedModel([turn]) as model:
        [events] = ask(model, wire, wants(tools=[tool()]))
    message = reply(events)
    assert message.id == "m-reply"
    assert message.text == "I will read."
    assert message.stop is Stop.TOOLS
    assert message.calls[0].arguments == {"path": "ä.txt"}
    assert message.usage == Usage(input=100, output=20, cache_read=40)
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "I will read."
    assert "".join(e.text for e in events if isinstance(e, ThinkingDelta)) == "let me see"
    sizes = [e.characters for e in events if isinstance(e, CallDelta)]
    assert sizes == sorted(sizes)
    assert {e.call_id for e in events if isinstance(e, CallDelta)} == {message.calls[0].id}


@WIRES
def test_parallel_calls_keep_their_order_and_arguments(wire):
    turn = [call("read", path="a"), call("read", path="b"), call_with("ls", {})]
    with ScriptedModel([turn]) as model:
        [events] = ask(model, wire, wants(tools=[tool(), tool("ls", {"type": "object"})]))
    calls = reply(events).calls
    assert [(c.name, dict(c.arguments)) for c in calls] == [
        ("read", {"path": "a"}),
        ("read", {"path": "b"}),
        ("ls", {}),
    ]


@WIRES
@pytest.mark.parametrize("text", ['{"path": "a', "[1, 2]", '"text"', "nonsense", "[" * 5000])
def test_arguments_that_are_no_object_are_kept_as_broken_text(wire, text):
    with ScriptedModel([call_broken("read", text)]) as model:
        [events] = ask(model, wire, wants(tools=[tool()]))
    made = reply(events).calls[0]
    assert made.broken == text
    assert made.arguments == {}


@WIRES
def test_a_broken_call_goes_back_in_a_form_the_endpoint_takes(wire):
    broken = ToolCall(id="c1", name="read", arguments={}, broken='{"path": "a')
    history = (said("go"), answered(broken, stop=Stop.TOOLS), gave("c1", "no JSON"))
    with ScriptedModel([say("ok")]) as model:
        ask(model, wire, wants(*history, tools=[tool()]))
        sent = json.dumps(model.requests[0].body)
    assert "unreadable" in sent


@WIRES
def test_a_call_id_used_before_is_replaced(wire):
    history = (said("go"), answered(called("call_0", path="a")), gave("call_0", "text"))
    turn = [
        call_with("read", {"path": "b"}, call_id="call_0"),
        call_with("read", {}, call_id="x:1"),
    ]
    with ScriptedModel([turn]) as model:
        [events] = ask(model, wire, wants(*history, tools=[tool()]))
    ids = [made.id for made in reply(events).calls]
    assert len({*ids, "call_0", "x:1"}) == 4


@WIRES
def test_each_call_is_answered_once_and_right_away(wire):
    history = (
        said("go"),
        answered(called("c1", path="a"), called("c2", path="b"), stop=Stop.TOOLS),
        gave("c2", "second"),
        said("by the way"),
        gave("c1", "first"),
        gave("c9", "by hand"),
    )
    with ScriptedModel([say("ok")]) as model:
        ask(model, wire, wants(*history, tools=[tool()]))
        request = model.requests[0]
    assert list(request.results) == ["first", "second"]
    text = json.dumps(request.body)
    assert text.index("second") < text.index("by the way") < text.index("by hand")


@WIRES
def test_a_call_that_never_ran_gets_a_result_that_says_so(wire):
    history = (said("go"), answered(called("c1", path="a"), stop=Stop.TOOLS), said("again"))
    with ScriptedModel([say("ok")]) as model:
        ask(model, wire, wants(*history, tools=[tool()]))
        request = model.requests[0]
    assert "never run" in request.last_result


@WIRES
@pytest.mark.parametrize("end", [Stop.INTERRUPTED, Stop.FAILED, Stop.REFUSED])
def test_a_reply_that_was_cut_off_leaves_no_orphan_call(wire, end):
    history = (said("go"), answered(Text("I will"), called("c1"), stop=end), said("again"))
    with ScriptedModel([say("ok")]) as model:
        ask(model, wire, wants(*history, tools=[tool()]))
        text = json.dumps(model.requests[0].body["messages"])
    assert "I will" in text
    assert "c1" not in text


@WIRES
def test_empty_messages_are_never_sent(wire):
    history = (said("go"), answered(Text("  \n")), answered(), said(""), said("now"))
    with ScriptedModel([say("ok")]) as model:
        ask(model, wire, wants(*history, system="  "))
        messages = model.requests[0].messages
    roles = [message["role"] for message in messages]
    assert set(roles) == {"user"}
    assert "now" in json.dumps(messages)


@WIRES
def test_pictures_of_prompts_and_results_reach_the_model(wire):
    picture = Image(data=PNG, mime="image/jpeg")  # labelled wrongly on purpose
    blob = Resource(uri="a://b", mime="image/png", blob=PNG)
    history = (
        said("go"),
        answered(called("c1"), stop=Stop.TOOLS),
        gave("c1", "text", picture, blob),
    )
    with ScriptedModel([say("ok")]) as model:
        ask(model, wire, wants(*history, tools=[tool()]))
        text = json.dumps(model.requests[0].body)
        last = model.requests[0].last_result
    assert text.count(PNG) == 2
    assert "image/jpeg" not in text
    assert "text" in last


@WIRES
def test_what_a_model_cannot_take_is_named_in_words(wire):
    parts = (
        Image(data="bm8gcGljdHVyZQ==", mime="image/png"),
        Image(data="%%%", mime="image/png"),
        Audio(data="AAAA", mime="audio/wav"),
        Resource(uri="file:///a", text="the text"),
        Resource(uri="file:///b", mime="application/zip", blob="AAAA"),
        ResourceLink(uri="file:///c", name="c"),
    )
    history = (said("go"), answered(called("c1"), stop=Stop.TOOLS), gave("c1", *parts))
    with ScriptedModel([say("ok")]) as model:
        ask(model, wire, wants(*history, tools=[tool()]))
        last = model.requests[0].last_result
    assert last.count("left out") == 4
    assert "the text" in last
    assert "file:///c" in last


@WIRES
def test_an_endpoint_without_pictures_is_asked_again_without_them(wire):
    history = (said("go"), answered(called("c1")), gave("c1", Image(data=PNG, mime="image/png")))
    refusal = fail(400, "this model does not support image input")
    with ScriptedModel([refusal, say("ok"), say("ok")]) as model:
        ask(model, wire, wants(*history), wants(*history))
        assert [PNG in json.dumps(request.body) for request in model.requests] == [
            True,
            False,
            False,
        ]


@WIRES
def test_surrogates_and_odd_numbers_do_not_break_a_request(wire):
    odd = called("c1", text="a\ud800b", number=float("nan"))
    history = (said("x\udfff"), answered(odd, stop=Stop.TOOLS), gave("c1", "\ud800"))
    with ScriptedModel([say("ok")]) as model:
        ask(model, wire, wants(*history))
        assert len(model.requests) == 1


@WIRES
def test_the_history_is_rendered_once(wire):
    first = (said("one"), answered(called("c1", path="a")), gave("c1", "text"))
    with ScriptedModel(then=say("ok")) as model:
        models, ident = models_of(model, wire)

        async def main():
            provider = models.create(ident)
            async with aclosing(provider.stream(wants(*first))) as events:
                async for _ in events:
                    pass
            kept = dict(provider._history._kept)
            async with aclosing(provider.stream(wants(*first, said("two")))) as events:
                async for _ in events:
                    pass
            again = provider._history._kept
            assert len(again) == len(kept) + 1
            same = [key for key in kept if again.get(key) is kept[key]]
            # OpenAI's reasoning moves with the newest prompt, so its answers render twice
            assert len(same) >= len(kept) - (2 if wire == "openai" else 0)
            await provider.close()

        asyncio.run(main())


@WIRES
@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_names_the_variable_and_not_the_key(wire, status):
    key = ScriptedModel().environ(wire)[f"{wire.upper()}_API_KEY"]
    with ScriptedModel([fail(status, f"invalid x-api-key {key}")]) as model:
        error = failure(model, wire)
    assert isinstance(error, AuthFailed)
    assert f"{wire.upper()}_API_KEY" in error.fix
    assert "loopback" not in str(error)
    assert delay(error, 1) is None


@WIRES
def test_an_unknown_model_is_told_with_the_nearest_one(wire):
    wrong = fail(404, "model: scriptd", kind="not_found_error")
    with ScriptedModel([wrong], models=["scripted", "other"]) as model:
        error = failure(model, wire, called=f"{wire}:scriptd")
    assert isinstance(error, UnknownModel)
    assert "scripted" in error.fix
    assert delay(error, 1) is None


@WIRES
@pytest.mark.parametrize(
    "refusal",
    [
        too_long(),
        fail(413, "Request exceeds the maximum size", kind="request_too_large"),
        fail(400, "This model's maximum context length is 8192 tokens.", kind="invalid"),
        fail(400, "the request exceeds the available context size, try increasing it"),
        fail(400, "input length and `max_tokens` exceed context limit: 1 + 2 > 2"),
    ],
)
def test_a_conversation_that_is_too_long_is_told_as_that(wire, refusal):
    with ScriptedModel([refusal]) as model:
        error = failure(model, wire)
    assert isinstance(error, ContextTooLong)
    assert delay(error, 1) is None


@WIRES
@pytest.mark.parametrize(
    ("refusal", "seconds"),
    [
        (fail(429, retry_after=7), 7.0),
        (fail(429, headers={"retry-after-ms": "1500"}), 1.5),
        (fail(429, retry_after="Mon, 01 Jan 2001 00:00:00 GMT"), 0.0),
        (fail(429, "Please try again in 900ms."), 0.9),
        (fail(429, retry_after="soon"), None),
        (fail(529), None),
        (fail(503), None),
        (fail(500), None),
        (fail(502, body=b"<html><title>Bad gateway</title></html>"), None),
    ],
)
def test_a_busy_endpoint_is_worth_another_try(wire, refusal, seconds):
    with ScriptedModel([refusal]) as model:
        error = failure(model, wire)
    assert isinstance(error, Overloaded)
    assert error.retry_after == seconds
    assert delay(error, 1) is not None
    assert delay(error, ATTEMPTS) is None


@WIRES
@pytest.mark.parametrize(
    "refusal",
    [
        fail(402, "pay"),
        fail(429, "You exceeded your current quota", kind="insufficient_quota"),
        fail(400, "Your credit balance is too low to access the API."),
    ],
)
def test_an_empty_account_is_not_asked_again(wire, refusal):
    with ScriptedModel([refusal]) as model:
        error = failure(model, wire)
    assert type(error) is ProviderError
    assert "credit" in error.fix
    assert delay(error, 1) is None


@WIRES
def test_another_refusal_carries_the_endpoints_own_words_made_safe(wire):
    with ScriptedModel([fail(400, "bad \x1b[31mfield\u202e 'x'" + "y" * 5000)]) as model:
        error = failure(model, wire)
    assert "field" in error.why
    assert "\x1b" not in str(error)
    assert "\u202e" not in str(error)
    assert len(error.why) <= 500


@WIRES
def test_an_address_that_is_wrong_is_told_as_that(wire):
    with ScriptedModel([fail(404, body=b"404 page not found")]) as model:
        error = failure(model, wire)
    assert "base_url" in error.fix
    with ScriptedModel([fail(308, headers={"location": "https://example.org/"})]) as model:
        error = failure(model, wire)
    assert "https://example.org/" in error.why


@WIRES
def test_nothing_listening_is_no_connection(wire):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = ScriptedModel(port=port)
    error = failure(model, wire)
    assert isinstance(error, NoConnection)
    assert str(port) in error.why
    assert delay(error, 1) is None


@WIRES
@pytest.mark.parametrize(
    "url", ["http://no-such-host.invalid/v1", "ftp://127.0.0.1/v1", "http://[::1", "nonsense", ""]
)
def test_an_address_that_cannot_be_used_is_one_clear_error(wire, url):
    from kage.config.schema import ProviderSpec, Settings
    from kage.providers.catalog import Models

    spec = ProviderSpec(name="mine", kind=wire, base_url=url)
    models = Models(Settings(providers={"mine": spec}), {}, local_ports={})

    async def main():
        provider = models.create("mine:x")
        try:
            async for _ in provider.stream(wants()):
                pass
        finally:
            await provider.close()

    with pytest.raises(ProviderError) as caught:
        asyncio.run(main())
    assert caught.value.what


@WIRES
def test_a_stream_that_is_cut_is_unreachable_and_its_text_was_seen(wire):
    seen = []
    with ScriptedModel([drop(after="half a sen")]) as model:
        models, ident = models_of(model, wire)

        async def main():
            provider = models.create(ident)
            try:
                async for event in provider.stream(wants()):
                    seen.append(event)
            finally:
                await provider.close()

        with pytest.raises(Unreachable) as caught:
            asyncio.run(main())
    assert "".join(event.text for event in seen) == "half a sen"
    assert delay(caught.value, 1) is not None


@WIRES
def test_an_error_inside_the_stream_is_told(wire):
    with ScriptedModel([[say("a"), stream_error("overloaded_error", "Overloaded")]]) as model:
        assert isinstance(failure(model, wire), Overloaded)
    with ScriptedModel([stream_error("invalid_request_error", "no")]) as model:
        assert "no" in failure(model, wire).why


@WIRES
@pytest.mark.parametrize(
    "data",
    [
        b"data: {not json}\n\n",
        b"data: 42\n\n",
        b"data: \xff\xfe\n\n",
        b"data: " + b"[" * 100_000 + b"\n\n",
    ],
)
def test_garbage_in_the_stream_is_one_error(wire, data):
    with ScriptedModel([raw(data)]) as model:
        assert isinstance(failure(model, wire), ProviderError)


@WIRES
def test_comments_blank_lines_and_unknown_events_are_passed_over(wire):
    noise = raw(b': ping\n\n\r\n\revent: new_thing\ndata: {"type": "new_thing"}\n\nretry: 5\n\n')
    with ScriptedModel([[noise, say("fine"), noise]]) as model:
        [events] = ask(model, wire)
    assert reply(events).text == "fine"


@WIRES
def test_an_event_beyond_the_limit_ends_the_reply(wire, monkeypatch):
    monkeypatch.setattr("kage.providers.wire.MAX_EVENT", 1000)
    with ScriptedModel([raw(b"data: " + b"x" * 5000 + b"\n\n")]) as model:
        assert isinstance(failure(model, wire), ProviderError)


@WIRES
def test_a_reply_beyond_the_limit_ends(wire, monkeypatch):
    monkeypatch.setattr("kage.providers.wire.MAX_REPLY", 2000)
    with ScriptedModel([say("x" * 4000)]) as model:
        assert "more than a reply can hold" in failure(model, wire).what


@WIRES
def test_silence_ends_with_an_error(wire, monkeypatch):
    monkeypatch.setattr("kage.providers.wire.IDLE_LOCAL", 0.2)
    never = threading.Event()
    with ScriptedModel([[say("a"), hold(never)]]) as model:
        error = failure(model, wire)
    assert isinstance(error, Unreachable)
    assert "silent" in error.what


@WIRES
def test_closing_the_stream_closes_the_connection(wire):
    never = threading.Event()
    with ScriptedModel([[say("some text"), hold(never)], say("next")]) as model:
        models, ident = models_of(model, wire)

        async def main():
            provider = models.create(ident)
            async with aclosing(provider.stream(wants())) as events:
                async for event in events:
                    assert isinstance(event, TextDelta)
                    break
            again = [event async for event in provider.stream(wants())]
            await provider.close()
            return again

        assert reply(asyncio.run(main())).text == "next"


@WIRES
def test_cancelling_is_not_swallowed(wire):
    never = threading.Event()
    with ScriptedModel([hold(never)]) as model:
        models, ident = models_of(model, wire)

        async def main():
            provider = models.create(ident)

            async def read():
                return [event async for event in provider.stream(wants())]

            task = asyncio.create_task(read())
            while not model.requests:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await provider.close()

        asyncio.run(main())


@WIRES
def test_a_connection_is_used_again(wire):
    ports = []
    with ScriptedModel(then=say("ok"), on_request=lambda r: ports.append(r.peer)) as model:
        ask(model, wire, wants(), wants(), wants())
    assert len(set(ports)) == 1


@WIRES
def test_illegal_argument_names_are_renamed_for_the_model_and_back(wire):
    schema = {
        "type": "object",
        "properties": {"wofür?": {"type": "string"}, "b": {"type": "string"}},
        "required": ["wofür?"],
    }

    def answer(request):
        found = request.tools["odd"]
        shown = found.get("input_schema") or found["function"]["parameters"]
        [name] = [key for key in shown["properties"] if key != "b"]
        assert shown["required"] == [name]
        assert "wofür?" in shown["properties"][name]["description"]
        return call_with("odd", {name: "x", "b": "y"})

    with ScriptedModel([answer]) as model:
        [events] = ask(model, wire, wants(tools=[tool("odd", schema)]))
    assert reply(events).calls[0].arguments == {"wofür?": "x", "b": "y"}


@WIRES
def test_the_model_sees_which_server_a_tool_is_from(wire):
    one = tool("github__make", description="Make. " * 1000, server="github")
    with ScriptedModel([say("ok")]) as model:
        ask(model, wire, wants(tools=[one]))
        found = model.requests[0].tools["github__make"]
    text = found.get("description") or found["function"]["description"]
    assert text.startswith("[server github] Make.")
    assert len(text.encode()) <= 2048


@WIRES
def test_a_reply_cut_at_its_length_keeps_its_text_and_breaks_its_last_call(wire):
    reason = "max_tokens" if wire == "anthropic" else "length"
    with ScriptedModel([[say("a"), call_broken("read", '{"pa'), stop(reason)]]) as model:
        [events] = ask(model, wire)
    message = reply(events)
    assert message.stop is Stop.LENGTH
    assert message.calls[0].broken == '{"pa'
    with ScriptedModel([[call_broken("read", ""), stop(reason)]]) as model:
        [events] = ask(model, wire)
    assert reply(events).calls[0].broken is not None


@WIRES
def test_a_refusal_of_the_model_carries_no_calls(wire):
    reason = "refusal" if wire == "anthropic" else "content_filter"
    with ScriptedModel([[say("No."), call("read", path="a"), stop(reason)]]) as model:
        [events] = ask(model, wire)
    assert reply(events).stop is Stop.REFUSED
    assert reply(events).calls == ()


@WIRES
@pytest.mark.parametrize("reason", ["pause_turn", "something_new", "eos"])
def test_an_odd_stop_reason_ends_the_reply(wire, reason):
    with ScriptedModel([[say("a"), stop(reason)]]) as model:
        [events] = ask(model, wire)
    assert reply(events).stop is Stop.END


@WIRES
def test_an_answer_that_is_not_streamed_is_read_whole(wire):
    whole = {
        "anthropic": {
            "type": "message",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 3, "output_tokens": 4},
        },
        "openai": {
            "choices": [
                {
                    "message": {
                        "content": "hi",
                        "tool_calls": [
                            {"id": "c1", "function": {"name": "read", "arguments": {"path": "a"}}}
                        ],
                    },
                    "finish_reason": "tool_calls",
                }
            ],
            "usage": {"prompt_tokens": 3, "completion_tokens": 4},
        },
    }[wire]
    with ScriptedModel([fail(200, body=json.dumps(whole).encode())]) as model:
        [events] = ask(model, wire)
    message = reply(events)
    assert message.text == "hi"
    assert message.calls[0].arguments == {"path": "a"}
    assert message.usage == Usage(input=3, output=4)


@WIRES
def test_a_web_page_instead_of_an_answer_is_told(wire):
    page = fail(200, headers={"content-type": "text/html"}, body=b"<h1>Sign in</h1>")
    with ScriptedModel([page]) as model:
        assert "Sign in" in failure(model, wire).why


@WIRES
@pytest.mark.parametrize(
    "outcome", [Outcome.TOOL_ERROR, Outcome.REFUSED, Outcome.UNKNOWN, Outcome.NEVER_SENT]
)
def test_a_failed_call_is_marked_as_failed(wire, outcome):
    history = (said("go"), answered(called("c1")), gave("c1", "sorry", outcome=outcome))
    with ScriptedModel([say("ok")]) as model:
        ask(model, wire, wants(*history))
        request = model.requests[0]
    if wire == "anthropic":
        assert request.messages[-1]["content"][0]["is_error"] is True
    else:
        assert request.last_result.startswith("[")
    assert "sorry" in request.last_result


@WIRES
def test_a_listing_that_never_comes_leaves_the_first_error(wire, monkeypatch):
    monkeypatch.setattr("kage.providers.listing.SUGGEST", 0.1)
    refusal = fail(404, "model: scripted", kind="not_found_error")
    with ScriptedModel([refusal], models_wait=threading.Event()) as model:
        error = failure(model, wire)
    assert isinstance(error, UnknownModel)
    assert "/model" in error.fix  # for the chat
    assert "--model" in error.fix  # for print mode
