"""Front ends are told no secret, whichever event carries it and however it is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kage.agent.screening import Screen
from kage.core import events as ev
from kage.core.content import Image, Text
from kage.core.events import Event
from kage.core.gate import CallRequest, Question
from kage.core.levels import Level
from kage.core.messages import (
    AssistantMessage,
    Outcome,
    Stop,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from kage.core.redact import Redactor
from kage.core.tools import Risk, ToolSpec
from kage.core.usage import Usage

SECRET = "hunter2-hunter2"
NESTED: dict[str, Any] = {"a": [{SECRET: f"x {SECRET}"}, 1, None, True]}
TOOL = ToolSpec(name="docs__send", description="", schema={}, risk=Risk.EXEC)


def screen() -> Screen:
    redact = Redactor()
    redact.add("TOKEN", SECRET)
    return Screen(redact)


def told(*events: Event) -> list[Event]:
    show = screen()
    return [out for event in events for out in show(event)]


def reply(text: str) -> ev.MessageAppended:
    parts = (Text(text), Thinking(text=text), ToolCall(id="c", name="x__y", arguments=NESTED))
    return ev.MessageAppended(
        message=AssistantMessage(id="m1", parts=parts, model="m", stop=Stop.END)
    )


def test_every_event_with_words_of_others_is_cleaned() -> None:
    request = CallRequest(call_id="c", tool=TOOL, arguments=NESTED, workspace=Path("/w"))
    question = Question(id="q1", request=request, digest="d", reason=SECRET, scopes=(SECRET,))
    result = ToolMessage(call_id="c", name="x", outcome=Outcome.OK, content=(Text(SECRET),),
                         structured=NESTED, summary=SECRET)  # fmt: skip
    events: tuple[Event, ...] = (
        reply(SECRET),
        ev.MessageAppended(message=result),
        ev.MessageAppended(message=UserMessage(content=(Text(SECRET),))),
        ev.ToolQueued(call=ToolCall(id="c", name="x", arguments=NESTED), spec=TOOL),
        ev.ToolProgressed(call_id="c", progress=1, total=None, message=SECRET),
        ev.Noticed(level=Level.INFO, what=SECRET, why=SECRET, fix=SECRET),
        ev.ModelRetried(attempt=1, attempts=2, seconds=1.0, reason=SECRET),
        ev.PromptsWaiting(steering=(SECRET,), queued=(SECRET,)),
        ev.SessionOpened(session_id="s", title=SECRET),
    )
    for event in events:
        assert SECRET not in repr(told(event)), event
    (asked,) = told(ev.ApprovalRequested(question=question))
    assert isinstance(asked, ev.ApprovalRequested)
    assert SECRET not in repr(asked.question.request)
    assert asked.question.scopes == (SECRET,)  # a rule is what it says
    assert request.arguments is NESTED  # the call itself goes out as it was approved


def test_what_holds_no_secret_is_the_very_same() -> None:
    event = reply("fine")
    clean = ev.MessageAppended(message=UserMessage(content=(Image(data=SECRET, mime="image/png"),)))
    assert told(clean) == [clean]
    assert told(ev.TextStreamed(message_id="m1", text="Ü?"))[0] == ev.TextStreamed(
        message_id="m1", text="Ü?"
    )
    assert SECRET not in repr(told(event))


@given(st.lists(st.sampled_from(["hunter2", "-", "hun", "ter2-hunter2", " x ", "hunter2-hunter2"]),
                max_size=12))  # fmt: skip
def test_a_streamed_reply_reads_as_the_message_that_ends_it(pieces: list[str]) -> None:
    whole = "".join(pieces)
    events = [ev.TextStreamed(message_id="m1", text=piece) for piece in pieces]
    out = told(*events, reply(whole))
    streamed = "".join(event.text for event in out if isinstance(event, ev.TextStreamed))
    assert SECRET not in streamed
    last = out[-1]
    assert isinstance(last, ev.MessageAppended) and isinstance(last.message, AssistantMessage)
    assert streamed == last.message.text


def test_reasoning_and_answer_do_not_run_into_each_other() -> None:
    out = told(
        ev.ThinkingStreamed(message_id="m1", text="so hunter2"),
        ev.TextStreamed(message_id="m1", text="-hunter2"),
        ev.TurnStarted(run_id="r", turn=2, message_id="m2", model="m"),
    )
    assert "".join(e.text for e in out if isinstance(e, ev.ThinkingStreamed)) == "so hunter2"
    assert "".join(e.text for e in out if isinstance(e, ev.TextStreamed)) == "-hunter2"
    kinds = [type(event) for event in out]
    assert kinds.index(ev.TextStreamed) > kinds.count(ev.ThinkingStreamed) - 1


def finished() -> ev.RunFinished:
    return ev.RunFinished(run_id="r", end=ev.RunEnd.FAILED, usage=Usage(), cost=None, turns=1,
                          refused=0, seconds=1.0)  # fmt: skip


def test_no_end_of_a_reply_is_held_back_whatever_ends_it() -> None:
    text = ev.TextStreamed(message_id="m1", text="looking at h")
    thought = ev.ThinkingStreamed(message_id="m1", text="looking at h")
    for end in (
        ev.ModelRetried(attempt=1, attempts=2, seconds=1.0, reason="busy"),
        ev.CallStreamed(message_id="m1", call_id="c", name="x__y", characters=3),
        ev.TurnStarted(run_id="r", turn=2, message_id="m2", model="m"),
        reply("looking at h"),
        finished(),
    ):
        for streamed in (text, thought):
            *out, last = told(streamed, end)
            assert type(last) is type(end)
            assert "".join(getattr(event, "text", "") for event in out) == "looking at h"


def test_a_secret_that_goes_on_behind_a_call_is_not_completed() -> None:
    step = ev.CallStreamed(message_id="m1", call_id="c", name="x__y", characters=3)
    out = told(
        ev.TextStreamed(message_id="m1", text="it is hunter2-hu"), step,
        ev.TextStreamed(message_id="m1", text="nter2."), step,
        ev.TextStreamed(message_id="m1", text=" so h"), step, step,
        ev.TextStreamed(message_id="m1", text="m"), finished(),
    )  # fmt: skip
    streamed = "".join(event.text for event in out if isinstance(event, ev.TextStreamed))
    assert streamed == "it is [redacted:TOKEN]. so hm"


def test_output_of_two_calls_is_held_back_apart() -> None:
    done = ToolMessage(call_id="a", name="x", outcome=Outcome.OK, content=())
    out = told(
        ev.ToolPrinted(call_id="a", text="1 hunter2-"),
        ev.ToolPrinted(call_id="b", text="2 hunter2-"),
        ev.ToolPrinted(call_id="a", text="hunter2"),
        ev.MessageAppended(message=done),
    )
    printed = [(e.call_id, e.text) for e in out if isinstance(e, ev.ToolPrinted)]
    assert printed == [("a", "1 "), ("b", "2 "), ("a", "[redacted:TOKEN]")]
