"""Replies no sound model would give: each call has one result and the session loads again."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from kage.core.commands import SubmitPrompt
from kage.core.content import Text
from kage.core.events import MessageAppended, RunEnd
from kage.core.gate import CallRequest, Decision
from kage.core.messages import AssistantMessage, Message, Outcome, Stop, ToolCall, ToolMessage
from kage.core.tools import Invocation, ToolResult
from tests.agent.fakes import Bench, FakeGate, FakeTool, echo, says


def _call(name: str, call_id: str, **arguments: object) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def _answered(bench: Bench, *, runs: int = 1) -> tuple[Message, ...]:
    async def work() -> None:
        await bench.engine.start()
        for number in range(runs):
            bench.engine.send(SubmitPrompt(content=(Text("go"),)))
            finished = await bench.finished(number + 1)
            assert finished.end is RunEnd.DONE, finished
        await bench.engine.close()

    asyncio.run(work())
    return tuple(event.message for event in bench.events if isinstance(event, MessageAppended))


def _assert_paired(messages: tuple[Message, ...]) -> None:
    calls = [c.id for m in messages if isinstance(m, AssistantMessage) for c in m.calls]
    results = [m.call_id for m in messages if isinstance(m, ToolMessage)]
    assert sorted(calls) == sorted(results)
    assert len(set(calls)) == len(calls)
    assert all(0 < len(call_id) <= 256 for call_id in calls)


def _reload(bench: Bench) -> tuple[Message, ...]:
    file = bench.store.load(bench.store.list()[0].id)
    assert file.dropped == ()
    return file.messages


@pytest.mark.parametrize("call_id", ["same", "", "x" * 100_000, "\x1b[2J", "\ud800"])
def test_calls_with_one_id_have_a_result_each(tmp_path: Path, call_id: str) -> None:
    calls = [_call("echo", call_id, n=n) for n in range(3)]
    bench = Bench(tmp_path, says(calls=calls), says("done"), tools=[echo()])
    messages = _answered(bench)
    _assert_paired(messages)
    said = {m.call_id: m.content[0] for m in messages if isinstance(m, ToolMessage)}
    for reply in messages:
        for asked in reply.calls if isinstance(reply, AssistantMessage) else ():
            assert said[asked.id] == Text(f"echo {asked.arguments}")
    _assert_paired(_reload(bench))


def test_ids_that_come_again_in_each_reply_are_told_apart(tmp_path: Path) -> None:
    steps = [says(calls=[_call("echo", "call_0", n=n)]) for n in range(3)]
    bench = Bench(tmp_path, *steps, says("done"), tools=[echo()])
    messages = _answered(bench)
    _assert_paired(messages)
    assert [m.id for m in _reload(bench)] == [m.id for m in bench.engine.messages()]


def test_five_hundred_calls_in_one_reply_have_a_result_each(tmp_path: Path) -> None:
    calls = [_call("echo" if n % 2 else f"nothing{n}", f"c{n}", n=n) for n in range(500)]
    bench = Bench(tmp_path, says(calls=calls), says("done"), tools=[echo()])
    messages = _answered(bench)
    _assert_paired(messages)
    outcomes = [m.outcome for m in messages if isinstance(m, ToolMessage)]
    assert outcomes.count(Outcome.OK) == outcomes.count(Outcome.NEVER_SENT) == 250


def test_the_name_of_a_tool_nobody_has_costs_nothing(tmp_path: Path) -> None:
    names = ["", "x" * 5_000_000, "\x1b[2J", "../../read", "\ud800", "a" * 63 + "\n" * 10_000]
    calls = [_call(name, f"c{n}") for n, name in enumerate(names)]
    tools = [echo(f"tool_{n:03}_{'a' * 50}") for n in range(300)]
    bench = Bench(tmp_path, says(calls=calls), says("done"), tools=tools)
    start = time.process_time()
    messages = _answered(bench)
    assert time.process_time() - start < 20  # it would be hours
    results = [m for m in messages if isinstance(m, ToolMessage)]
    assert [m.outcome for m in results] == [Outcome.NEVER_SENT] * len(names)
    assert all(len(m.content[0].text) < 1000 for m in results if isinstance(m.content[0], Text))
    _assert_paired(_reload(bench))


def test_odd_arguments_cost_their_call_only(tmp_path: Path) -> None:
    deep: object = 1
    for _ in range(300):
        deep = [deep]
    odd: list[object] = [float("nan"), float("inf"), deep, "\ud800", 10**4100, "x" * 10_000_000]
    calls = [_call("sink", f"c{n}", value=value) for n, value in enumerate(odd)]
    reached: list[str] = []

    async def sink(invocation: Invocation) -> ToolResult:
        reached.append(invocation.call_id)
        return ToolResult(content=(Text("ok"),))

    bench = Bench(tmp_path, says(calls=calls), says("done"), tools=[FakeTool("sink", sink)])
    messages = _answered(bench)
    _assert_paired(messages)
    assert reached == ["c5"]
    _assert_paired(_reload(bench))


def test_calls_beside_a_refusal_have_a_result_each(tmp_path: Path) -> None:
    refused = says("no", calls=[_call("echo", "c0")], stop=Stop.REFUSED)
    bench = Bench(tmp_path, refused, says("done"), tools=[echo()])
    messages = _answered(bench)
    _assert_paired(messages)


def test_a_call_that_was_let_through_and_never_began_is_recorded_as_never_sent(
    tmp_path: Path,
) -> None:
    ran: list[str] = []

    async def note(invocation: Invocation) -> ToolResult:
        ran.append(invocation.call_id)
        return ToolResult(content=())

    async def work() -> None:
        calls = [_call("note", "c0"), _call("echo", "c1")]
        bench = Bench(tmp_path, says(calls=calls), tools=[FakeTool("note", note), echo()])

        class Broken(FakeGate):
            async def decide(self, request: CallRequest, *, preview: Any = None) -> Decision:
                if request.tool.name == "echo":
                    raise RuntimeError("the gate fell over")
                return await super().decide(request, preview=preview)

        await bench.engine.start()
        bench.gates[0].__class__ = Broken
        bench.engine.send(SubmitPrompt(content=(Text("go"),)))
        assert (await bench.finished()).end is RunEnd.FAILED
        results = [m for m in bench.engine.messages() if isinstance(m, ToolMessage)]
        assert ran == []
        assert [result.outcome for result in results] == [Outcome.NEVER_SENT] * 2
        assert bench.gates[0].finished == [("note", Outcome.NEVER_SENT)]
        await bench.engine.close()

    asyncio.run(work())
