"""Undo in a session: after an interrupt, refused while a run is on, and told to the model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kage.core.commands import Interrupt, UndoCall
from kage.core.content import Text, as_text
from kage.core.events import CallUndone, Noticed, RunFinished
from kage.core.messages import Outcome, ToolMessage, UserMessage
from kage.core.tools import Invocation, Risk, ToolResult
from kage.providers.base import CallDelta, ModelEvent, ModelRequest
from kage.tools.effects import watch
from tests.agent.fakes import Bench, FakeGate, FakeTool, call, hangs, says
from tests.agent.test_engine import prompt
from tests.waiting import until


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for every look, however slow the machine is."""
    monkeypatch.setattr(watch, "PATIENCE", 60.0)
    monkeypatch.setattr(watch, "AFTER", 60.0)


def test_the_first_look_begins_while_the_model_still_writes_its_call(tmp_path: Path) -> None:
    async def work() -> None:
        async def writes(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            yield CallDelta(call_id="c1", name="nothing_there", characters=0)
            yield CallDelta(call_id="c1", name="bash", characters=1)
            await asyncio.Event().wait()

        async def unused(invocation: Invocation) -> ToolResult:
            raise AssertionError

        tool = FakeTool("bash", unused, risk=Risk.EXEC)
        bench = Bench(tmp_path, writes, tools=[tool])
        await bench.engine.start()
        bench.engine.send(prompt("go"))
        await until(lambda: list(tmp_path.glob("sessions/*/undo/snapshot.git")))
        await bench.engine.close()

    asyncio.run(work())


def test_an_interrupted_call_is_undone_when_no_run_is_on_and_the_model_is_told(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        page = tmp_path / "page"
        page.write_text("before\n")
        wrote = asyncio.Event()

        async def slow(invocation: Invocation) -> ToolResult:
            page.write_text("half-way\n")
            wrote.set()
            await asyncio.Event().wait()
            return ToolResult(content=(Text("never"),))

        tool = FakeTool("bash", slow, risk=Risk.EXEC)
        steps = (says(calls=[call("bash", command="x")]), hangs("thinking"), says("I see"))
        bench = Bench(tmp_path, *steps, tools=[tool])
        await bench.engine.start()
        bench.engine.send(prompt("go"))
        await wrote.wait()
        bench.engine.send(Interrupt())
        await until(lambda: bench.of(RunFinished))
        (result,) = (m for m in bench.engine.messages() if isinstance(m, ToolMessage))
        assert result.effect is not None
        assert [file.path for file in result.effect.files] == ["page"]
        bench.engine.send(prompt("go on"))
        await until(lambda: len(bench.provider.requests) == 2)
        bench.engine.send(UndoCall(record=result.effect.record))
        await until(lambda: bench.of(Noticed))
        assert page.read_text() == "half-way\n"
        bench.engine.send(Interrupt())
        await until(lambda: len(bench.of(RunFinished)) == 2)
        bench.engine.send(UndoCall(record=result.effect.record))
        await until(lambda: bench.of(CallUndone))
        assert page.read_text() == "before\n"
        items = await bench.engine.undo.items()
        assert [item.why for item in items] == ["", "it is undone"]
        bench.engine.send(UndoCall(record=items[0].record.id))
        await until(lambda: len(bench.of(CallUndone)) == 2)
        assert page.read_text() == "half-way\n"
        first, second = bench.of(CallUndone)
        assert (first.call_id, first.back) == (second.call_id, False)
        assert second.back
        bench.engine.send(prompt("and?"))
        await until(lambda: len(bench.of(RunFinished)) == 3)
        said = [m for m in bench.provider.requests[-1].messages if isinstance(m, UserMessage)]
        assert any("I undid the file changes" in as_text(m.content) for m in said)
        await bench.engine.close()
        assert not list(tmp_path.glob("sessions/*/undo/snapshot.git"))

    asyncio.run(work())


def test_what_a_call_did_is_told_where_recording_its_end_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        page = tmp_path / "page"
        ended = asyncio.Event()

        async def writes(_: Invocation) -> ToolResult:
            page.write_text("by the call\n")
            return ToolResult(content=(Text("done"),))

        async def stuck(*_: object, **__: object) -> Outcome:
            ended.set()
            await asyncio.Event().wait()
            return Outcome.OK

        monkeypatch.setattr(FakeGate, "finish", stuck)
        tool = FakeTool("bash", writes, risk=Risk.EXEC)
        bench = Bench(tmp_path, says(calls=[call("bash", command="x")]), tools=[tool])
        await bench.engine.start()
        bench.engine.send(prompt("go"))
        await ended.wait()
        bench.engine.send(Interrupt())
        await until(lambda: bench.of(RunFinished))
        (result,) = (m for m in bench.engine.messages() if isinstance(m, ToolMessage))
        assert result.effect is not None
        assert [file.path for file in result.effect.files] == ["page"]
        await bench.engine.close()

    asyncio.run(work())
