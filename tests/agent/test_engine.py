"""The engine, driven by commands and judged by its events and the session file."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kage.config.schema import Limits
from kage.core.commands import (
    AnswerApproval,
    Interrupt,
    NewSession,
    RepeatCall,
    ResumeSession,
    RunShell,
    SetModel,
    SubmitPrompt,
)
from kage.core.content import Text, as_text
from kage.core.errors import AuthFailed, Overloaded, ToolError, Unreachable
from kage.core.events import (
    ApprovalRequested,
    ApprovalSettled,
    ContextMeasured,
    MessageAppended,
    ModelChanged,
    ModelRetried,
    Noticed,
    PromptsWaiting,
    RunEnd,
    RunFinished,
    RunStarted,
    SessionOpened,
    TextStreamed,
    ToolQueued,
    ToolsSwapped,
    ToolStarted,
    TurnStarted,
)
from kage.core.gate import Answer, Reply
from kage.core.messages import AssistantMessage, Outcome, Stop, ToolCall, ToolMessage, UserMessage
from kage.core.tools import Invocation, Risk, Subject, SubjectKind, ToolResult
from tests.agent.fakes import Bench, FakeGate, FakeTool, call, echo, fails, hangs, says
from tests.waiting import until


def prompt(text: str, *, queue: bool = False) -> SubmitPrompt:
    return SubmitPrompt(content=(Text(text),), queue=queue)


def lines(bench: Bench, tmp_path: Path) -> list[dict[str, object]]:
    found = []
    for path in (tmp_path / "sessions").glob("*/session.jsonl"):
        found += [json.loads(line) for line in path.read_text().splitlines()]
    return found


def tool_messages(bench: Bench) -> list[ToolMessage]:
    return [m for m in bench.engine.messages() if isinstance(m, ToolMessage)]


def run(bench: Bench, *commands: object, runs: int = 1) -> RunFinished:
    async def work() -> RunFinished:
        await bench.engine.start()
        for command in commands:
            bench.engine.send(command)  # type: ignore[arg-type]
        finished = await bench.finished(runs)
        await bench.engine.close()
        return finished

    return asyncio.run(work())


def test_a_run_tells_its_events_in_order(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path, says("let me ", "look", calls=[call("echo", a=1)]), says("done"), tools=[echo()]
    )
    finished = run(bench, prompt("hello"))
    assert finished.end is RunEnd.DONE
    assert finished.turns == 2
    kinds = [
        type(event)
        for event in bench.events
        if not isinstance(event, TextStreamed | ContextMeasured | PromptsWaiting)
    ]
    start = kinds.index(MessageAppended)
    assert kinds[start:] == [
        MessageAppended,
        RunStarted,
        TurnStarted,
        MessageAppended,
        ToolQueued,
        ToolStarted,
        MessageAppended,
        TurnStarted,
        MessageAppended,
        RunFinished,
    ]


def test_a_prompt_is_on_disk_before_the_model_is_asked(tmp_path: Path) -> None:
    seen: list[str] = []

    def look(request: object) -> object:
        seen.extend(str(line.get("type")) for line in lines(bench, tmp_path))
        return says("ok")(request)  # type: ignore[arg-type]

    bench = Bench(tmp_path, look, tools=[])  # type: ignore[arg-type]
    run(bench, prompt("remember me"))
    assert "user" in seen


def test_every_message_of_a_run_is_in_the_session_file(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says(calls=[call("echo")]), says("done"), tools=[echo()])
    run(bench, prompt("hello"))
    assert [line["type"] for line in lines(bench, tmp_path)] == [
        "session",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


def test_an_interrupt_keeps_the_partial_reply_and_marks_it(tmp_path: Path) -> None:
    async def work() -> None:
        bench = Bench(tmp_path, hangs("half an ", "answer"), says("again"))
        await bench.engine.start()
        bench.engine.send(prompt("go"))
        await until(lambda: len(bench.of(TextStreamed)) == 2)
        bench.engine.send(Interrupt())
        bench.engine.send(Interrupt())
        finished = await bench.finished()
        assert finished.end is RunEnd.INTERRUPTED
        reply = bench.engine.messages()[-1]
        assert isinstance(reply, AssistantMessage)
        assert (reply.text, reply.stop) == ("half an answer", Stop.INTERRUPTED)
        bench.engine.send(prompt("go on"))
        assert (await bench.finished(2)).end is RunEnd.DONE
        await bench.engine.close()

    asyncio.run(work())


def test_an_interrupt_while_a_tool_runs_gives_every_call_one_result(tmp_path: Path) -> None:
    started = asyncio.Event()
    stopped: list[str] = []

    async def slow(invocation: Invocation) -> ToolResult:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(invocation.call_id)
            raise
        raise AssertionError

    async def work() -> None:
        bench = Bench(
            tmp_path,
            says(calls=[call("slow"), call("ask"), call("echo")]),
            tools=[FakeTool("slow", slow), echo("ask"), echo()],
            asks=["ask"],
        )
        await bench.engine.start()
        bench.engine.send(prompt("go"))
        await started.wait()
        await until(lambda: bench.of(ApprovalRequested))
        bench.engine.send(Interrupt())
        finished = await bench.finished()
        assert finished.end is RunEnd.INTERRUPTED
        assert [m.seconds > 0 for m in tool_messages(bench)] == [True, False, False]
        assert [m.outcome for m in tool_messages(bench)] == [
            Outcome.TOOL_ERROR,
            Outcome.NEVER_SENT,
            Outcome.NEVER_SENT,
        ]
        assert len(stopped) == 1
        assert bench.of(ApprovalSettled)[0].reply is None
        await bench.engine.close()

    asyncio.run(work())


def test_a_call_whose_end_could_not_be_recorded_is_not_said_to_have_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: FakeGate, *told: object, **more: object) -> Outcome:
        raise OSError("the disk is full")

    monkeypatch.setattr(FakeGate, "finish", broken)
    bench = Bench(tmp_path, says(calls=[call("echo")]), tools=[echo()])
    run(bench, prompt("go"))
    assert [m.outcome for m in tool_messages(bench)] == [Outcome.TOOL_ERROR]


def test_calls_are_judged_in_order_and_run_side_by_side(tmp_path: Path) -> None:
    inside = 0
    most = 0

    async def meet(_: Invocation) -> ToolResult:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.02)
        inside -= 1
        return ToolResult(content=(Text("met"),))

    names = ["one", "two", "three"]
    bench = Bench(
        tmp_path,
        says(calls=[call(name) for name in names]),
        says("done"),
        tools=[FakeTool(name, meet) for name in names],
    )
    run(bench, prompt("go"))
    assert bench.gates[0].order == names
    assert most == 3


def test_two_writes_of_one_reply_never_cross(tmp_path: Path) -> None:
    inside = 0

    async def write(_: Invocation) -> ToolResult:
        nonlocal inside
        inside += 1
        assert inside == 1
        await asyncio.sleep(0.01)
        inside -= 1
        return ToolResult(content=(Text("written"),))

    bench = Bench(
        tmp_path,
        says(calls=[call("w"), call("w"), call("w")]),
        says("done"),
        tools=[FakeTool("w", write, risk=Risk.WRITE)],
    )
    run(bench, prompt("go"))
    assert {m.outcome for m in tool_messages(bench)} == {Outcome.OK}


def test_a_refused_call_is_told_to_the_model_and_counted(tmp_path: Path) -> None:
    async def work() -> None:
        bench = Bench(
            tmp_path, says(calls=[call("echo")]), says("ok then"), tools=[echo()], asks=["echo"]
        )
        await bench.engine.start()
        bench.engine.send(prompt("go"))
        await until(lambda: bench.of(ApprovalRequested))
        question = bench.of(ApprovalRequested)[0].question
        bench.engine.send(AnswerApproval(question_id=question.id, reply=Reply(answer=Answer.NO)))
        finished = await bench.finished()
        assert finished.refused == 1
        assert tool_messages(bench)[0].outcome is Outcome.REFUSED
        asked = as_text(bench.provider.requests[1].messages[-1].content)  # type: ignore[union-attr]
        assert "said no" in asked
        assert not bench.of(ToolStarted)
        await bench.engine.close()

    asyncio.run(work())


def test_bad_arguments_never_reach_the_gate(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    broken = ToolCall(id="c1", name="echo", arguments={}, broken="{not json")
    bench = Bench(
        tmp_path,
        says(calls=[broken, call("echo", n="five"), call("ecko", n=5), call("echo", n=5)]),
        says("done"),
        tools=[echo(schema=schema)],
    )
    run(bench, prompt("go"))
    outcomes = [m.outcome for m in tool_messages(bench)]
    assert outcomes == [Outcome.NEVER_SENT, Outcome.NEVER_SENT, Outcome.NEVER_SENT, Outcome.OK]
    texts = [as_text(m.content) for m in tool_messages(bench)]
    assert "no JSON object" in texts[0]
    assert "n: 'five' is not of type 'integer'" in texts[1]
    assert "Did you mean echo" in texts[2]
    assert bench.gates[0].order == ["echo"]


def test_an_overlong_path_is_answered_before_anything_takes_it_apart(tmp_path: Path) -> None:
    tool = echo("read", subject=Subject(kind=SubjectKind.PATH, argument="path"))
    bench = Bench(
        tmp_path, says(calls=[call("read", path="a/" * 2_000_000)]), says("ok"), tools=[tool]
    )
    assert run(bench, prompt("go")).end is RunEnd.DONE
    assert "4,000,000 characters" in as_text(tool_messages(bench)[0].content)
    assert bench.gates[0].order == []


def test_a_tool_that_fails_costs_one_call(tmp_path: Path) -> None:
    async def bad(_: Invocation) -> ToolResult:
        raise ToolError("There is no such file", fix="Look with ls.")

    async def worse(_: Invocation) -> ToolResult:
        raise RuntimeError("oh")

    bench = Bench(
        tmp_path,
        says(calls=[call("bad"), call("worse"), call("echo")]),
        says("done"),
        tools=[FakeTool("bad", bad), FakeTool("worse", worse), echo()],
    )
    assert run(bench, prompt("go")).end is RunEnd.DONE
    results = {m.name: m for m in tool_messages(bench)}
    assert as_text(results["bad"].content) == "There is no such file. Look with ls."
    assert results["worse"].outcome is Outcome.TOOL_ERROR
    assert results["echo"].outcome is Outcome.OK
    assert len(bench.gates[0].finished) == 3


def test_an_overloaded_model_is_asked_again(tmp_path: Path) -> None:
    busy = Overloaded("The model is busy", retry_after=0.01)
    bench = Bench(tmp_path, fails(busy), says("here"))
    assert run(bench, prompt("go")).end is RunEnd.DONE
    assert len(bench.of(ModelRetried)) == 1


def test_a_dropped_stream_is_asked_again_and_leaves_no_half_message(tmp_path: Path) -> None:
    drop = Unreachable("The stream broke off", retry_after=0.01)
    bench = Bench(tmp_path, fails(drop, "half"), says("whole"))
    run(bench, prompt("go"))
    replies = [m for m in bench.engine.messages() if isinstance(m, AssistantMessage)]
    assert [reply.text for reply in replies] == ["whole"]


def test_an_interrupt_before_the_next_try_keeps_what_was_streamed(tmp_path: Path) -> None:
    async def work() -> None:
        drop = Unreachable("The stream broke off", retry_after=60.0)
        bench = Bench(tmp_path, fails(drop, "half"), says("whole"))
        await bench.engine.start()
        bench.engine.send(prompt("go"))
        await until(lambda: bench.of(ModelRetried))
        bench.engine.send(Interrupt())
        assert (await bench.finished()).end is RunEnd.INTERRUPTED
        reply = bench.engine.messages()[-1]
        assert isinstance(reply, AssistantMessage)
        assert (reply.text, reply.stop) == ("half", Stop.INTERRUPTED)
        await bench.engine.close()

    asyncio.run(work())


def test_a_refused_key_fails_the_run_and_keeps_the_prompt(tmp_path: Path) -> None:
    bench = Bench(tmp_path, fails(AuthFailed("The key was refused", fix="Set it.")), says("ok"))

    async def work() -> None:
        await bench.engine.start()
        bench.engine.send(prompt("go"))
        finished = await bench.finished()
        assert (finished.end, finished.what, finished.fix) == (
            RunEnd.FAILED,
            "The key was refused",
            "Set it.",
        )
        assert isinstance(bench.engine.messages()[-1], UserMessage)
        bench.engine.send(prompt("again"))
        assert (await bench.finished(2)).end is RunEnd.DONE
        await bench.engine.close()

    asyncio.run(work())


def test_a_prompt_sent_during_a_run_joins_the_next_turn(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def wait(_: Invocation) -> ToolResult:
        await gate.wait()
        return ToolResult(content=(Text("waited"),))

    async def work() -> None:
        bench = Bench(
            tmp_path,
            says(calls=[call("wait")]),
            says("one"),
            says("two"),
            tools=[FakeTool("wait", wait)],
        )
        await bench.engine.start()
        bench.engine.send(prompt("first"))
        await until(lambda: bench.of(ToolStarted))
        bench.engine.send(prompt("queued", queue=True))
        bench.engine.send(prompt("steer"))
        assert bench.of(PromptsWaiting)[-1] == PromptsWaiting(
            steering=("steer",), queued=("queued",)
        )
        gate.set()
        await bench.finished(2)
        said = [
            as_text(m.content)
            for m in bench.provider.requests[1].messages
            if isinstance(m, UserMessage)
        ]
        assert said == ["first", "steer"]
        said = [as_text(m.content) for m in bench.engine.messages() if isinstance(m, UserMessage)]
        assert said == ["first", "steer", "queued"]
        assert bench.of(PromptsWaiting)[-1] == PromptsWaiting(steering=(), queued=())
        await bench.engine.close()

    asyncio.run(work())


def test_a_prompt_waiting_at_an_interrupt_is_sent_next(tmp_path: Path) -> None:
    async def work() -> None:
        bench = Bench(tmp_path, hangs("a"), says("b"))
        await bench.engine.start()
        bench.engine.send(prompt("first"))
        await until(lambda: bench.of(TextStreamed))
        bench.engine.send(prompt("rather this"))
        bench.engine.send(Interrupt())
        assert (await bench.finished(2)).end is RunEnd.DONE
        await bench.engine.close()

    asyncio.run(work())


def test_a_run_ends_at_its_turn_limit(tmp_path: Path) -> None:
    steps = [says(calls=[call("echo")]) for _ in range(5)]
    bench = Bench(tmp_path, *steps, tools=[echo()], limits=Limits(max_turns=3))
    finished = run(bench, prompt("go"))
    assert finished.end is RunEnd.LIMIT
    assert len(bench.provider.requests) == 3


def test_a_run_ends_at_its_cost_limit(tmp_path: Path) -> None:
    steps = [says(calls=[call("echo")]) for _ in range(9)]
    bench = Bench(tmp_path, *steps, tools=[echo()], limits=Limits(max_cost=0.0002))
    assert run(bench, prompt("go")).end is RunEnd.LIMIT
    assert len(bench.provider.requests) == 2


def test_tools_change_only_between_turns(tmp_path: Path) -> None:
    class Swap:
        server = "s"
        tools = (echo("s__new"),)

    async def change(_: Invocation) -> ToolResult:
        bench.servers.offer(Swap())
        await asyncio.sleep(0.01)
        names = [spec.name for spec in bench.engine.tools()]
        return ToolResult(content=(Text(str("s__new" in names)),))

    bench = Bench(
        tmp_path, says(calls=[call("change")]), says("done"), tools=[FakeTool("change", change)]
    )
    run(bench, prompt("go"))
    assert as_text(tool_messages(bench)[0].content) == "False"
    assert [spec.name for spec in bench.provider.requests[1].tools] == ["change", "s__new"]
    assert bench.of(ToolsSwapped)


def test_tools_change_at_once_while_nothing_runs(tmp_path: Path) -> None:
    class Swap:
        server = "s"
        tools = (echo("s__new"),)

    async def work() -> None:
        bench = Bench(tmp_path)
        await bench.engine.start()
        bench.servers.offer(Swap())
        await until(bench.engine.tools)
        await bench.engine.close()

    asyncio.run(work())


def test_a_session_can_be_left_and_gone_on_with(tmp_path: Path) -> None:
    async def work() -> None:
        bench = Bench(tmp_path, says("one"), says("two"), says("three"))
        await bench.engine.start()
        bench.engine.send(prompt("first"))
        await bench.finished()
        first = bench.of(SessionOpened)[0].session_id
        bench.engine.send(NewSession())
        await until(lambda: len(bench.of(SessionOpened)) == 2)
        assert bench.engine.messages() == ()
        bench.engine.send(prompt("second"))
        await bench.finished(2)
        bench.engine.send(ResumeSession(session_id=first))
        await until(lambda: len(bench.of(SessionOpened)) == 3)
        opened = bench.of(SessionOpened)[2]
        assert (opened.title, len(opened.messages), opened.dropped) == ("first", 2, ())
        bench.engine.send(prompt("third"))
        await bench.finished(3)
        assert len(bench.engine.messages()) == 4
        await bench.engine.close()

    asyncio.run(work())


def test_an_unknown_session_is_told_and_the_open_one_stays(tmp_path: Path) -> None:
    async def work() -> None:
        bench = Bench(tmp_path, says("one"))
        await bench.engine.start()
        bench.engine.send(ResumeSession(session_id="nope"))
        await until(lambda: bench.of(Noticed))
        assert "nope" in bench.of(Noticed)[0].what
        bench.engine.send(prompt("still here"))
        assert (await bench.finished()).end is RunEnd.DONE
        await bench.engine.close()

    asyncio.run(work())


def test_a_shell_line_of_the_person_joins_the_conversation(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    async def work() -> None:
        await bench.engine.start()
        bench.engine.send(RunShell(line="echo hi; exit 3"))
        await until(bench.engine.messages)
        text = as_text(bench.engine.messages()[0].content)  # type: ignore[union-attr]
        assert "$ echo hi; exit 3" in text
        assert "hi\n(exit code 3)" in text
        await bench.engine.close()

    asyncio.run(work())


def test_a_prompt_sent_while_a_shell_line_runs_is_sent_after_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("heard"))
    finished = run(bench, RunShell(line="read x < /dev/null; echo done"), prompt("and this"))
    assert finished.end is RunEnd.DONE
    said = [as_text(m.content) for m in bench.engine.messages() if isinstance(m, UserMessage)]
    assert [text.splitlines()[-1] for text in said] == ["done", "and this"]


def test_no_prompt_is_lost_when_one_beside_it_cannot_be_sent_or_is_interrupted(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        bench = Bench(tmp_path, hangs("…"), says("one"), says("two"))
        attaching, blocked = asyncio.Event(), asyncio.Event()

        async def expand(message: UserMessage) -> UserMessage:
            if "@slow" in as_text(message.content):
                attaching.set()
                await blocked.wait()
            if "@bad" in as_text(message.content):
                raise ToolError("It cannot be had")
            return message

        await bench.engine.start()
        bench.engine._runner.expand_with(expand)
        bench.engine.send(prompt("first"))
        await until(lambda: [e for e in bench.events if isinstance(e, TextStreamed)])
        for text in ("@slow a", "b", "@bad c"):
            bench.engine.send(prompt(text))
        bench.engine.send(prompt("d", queue=True))
        bench.engine.send(Interrupt())
        await attaching.wait()
        bench.engine.send(Interrupt())  # while something is attached to the first of three
        await until(lambda: not bench.engine.running)
        said = [as_text(m.content) for m in bench.engine.messages() if isinstance(m, UserMessage)]
        assert said == ["first", "@slow a", "b", "@bad c", "d"]
        await bench.engine.close()

    asyncio.run(work())


def test_the_model_a_person_takes_while_one_is_being_chosen_stays(tmp_path: Path) -> None:
    async def work() -> None:
        bench = Bench(tmp_path)
        chosen = asyncio.Event()

        async def choose() -> tuple[str, str]:
            await chosen.wait()
            return "fake:one", "it is the only one"

        bench.engine._parts.models.choose = choose  # type: ignore[method-assign]
        await bench.engine.start()
        bench.engine.send(SetModel(model="fake:two"))
        chosen.set()
        await bench.engine._seat.provider()
        told = [event.reason for event in bench.events if isinstance(event, ModelChanged)]
        assert told == ["you chose it"]
        await bench.engine.close()

    asyncio.run(work())


def test_a_secret_in_a_result_reaches_neither_model_nor_disk(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path, says(calls=[call("echo", a="hunter2-secret")]), says("ok"), tools=[echo()]
    )
    bench.redact.add("PASS", "hunter2-secret")
    run(bench, prompt("go"))
    assert "[redacted:PASS]" in as_text(tool_messages(bench)[0].content)


def test_quitting_in_the_middle_of_a_run_ends_everything(tmp_path: Path) -> None:
    async def work() -> None:
        bench = Bench(tmp_path, hangs("x"))
        await bench.engine.start()
        bench.engine.send(prompt("go"))
        await until(lambda: bench.of(TextStreamed))
        await bench.engine.close()
        assert bench.servers.stopped
        assert bench.provider.closed
        assert lines(bench, tmp_path)[-1]["stop"] == "interrupted"

    asyncio.run(work())


def test_a_repeated_call_is_a_new_decision_about_the_same_arguments(tmp_path: Path) -> None:
    ends = [Outcome.UNKNOWN, Outcome.OK]
    seen: list[object] = []

    async def pay(invocation: Invocation) -> ToolResult:
        seen.append(dict(invocation.arguments))
        return ToolResult(content=(Text("?"),), outcome=ends.pop(0))

    async def work() -> None:
        made = call("pay", to="ann", amount=5)
        bench = Bench(
            tmp_path,
            says(calls=[made]),
            says("nobody knows"),
            says("paid"),
            tools=[FakeTool(name="pay", work=pay)],
            asks=["pay"],
        )

        async def answer(count: int, reply: Answer) -> None:
            await until(lambda: len(bench.of(ApprovalRequested)) == count)
            question = bench.of(ApprovalRequested)[-1].question
            bench.engine.send(AnswerApproval(question_id=question.id, reply=Reply(answer=reply)))

        await bench.engine.start()
        bench.engine.send(prompt("pay ann"))
        await answer(1, Answer.YES)
        await bench.finished()
        bench.engine.send(RepeatCall(call_id="other"))
        await until(lambda: bench.of(Noticed))
        assert "no such call" in bench.of(Noticed)[-1].what
        bench.engine.send(RepeatCall(call_id=made.id))
        await answer(2, Answer.YES)
        await bench.finished(2)
        first, second = tool_messages(bench)
        assert seen == [{"to": "ann", "amount": 5}] * 2
        assert first.call_id != second.call_id
        assert second.outcome is Outcome.OK
        reply = bench.engine.messages()[-1]
        assert isinstance(reply, AssistantMessage) and reply.text == "paid"
        bench.engine.send(RepeatCall(call_id=made.id))  # it is settled now
        await until(lambda: len(bench.of(Noticed)) == 2)
        assert len(seen) == 2
        await bench.engine.close()

    asyncio.run(work())
