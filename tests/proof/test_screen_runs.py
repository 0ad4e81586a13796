"""The chat through Pilot, on the engine, servers, gate and files a person would get."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from kage.agent.host import Host
from kage.cli.ground import Options, ground
from kage.cli.wiring import build
from kage.core.messages import AssistantMessage, Outcome, Stop, ToolMessage
from kage.core.servers import ServerState
from kage.permissions.decisions.log import verify
from kage.tui.app import KageApp
from kage.tui.screens.pins import PinsScreen
from tests.llm import ScriptedModel, call, hold, say
from tests.proof.house import House, server
from tests.tui.driving import QUIET, Driven
from tests.tui.driving import run as run_async


@asynccontextmanager
async def _chat(house: House, options: Options | None = None) -> AsyncIterator[Driven]:
    """Run the app on a house as ``kage.cli.run.screen`` puts it together."""
    here = ground(options or Options())

    def host() -> Host:
        return build(here, interactive=True).engine

    app = KageApp(host, keys={}, theme="", workspace=here.workspace, quiet=QUIET)
    async with app.run_test(size=(100, 30)) as pilot:
        driven = Driven(app, app, pilot)  # type: ignore[arg-type]  # its host is the app's own
        try:
            await driven.until(lambda: app.status.ready, "the host is up")
            await driven.until(lambda: _settled(driven), "every server is up or failed")
            yield driven
        finally:
            await app.link.close()


def _settled(driven: Driven) -> bool:
    states = [status.state for status in driven.app.status.servers.values()]
    return bool(driven.app.status.model) and all(
        state in {ServerState.CONNECTED, ServerState.FAILED, ServerState.DISABLED}
        for state in states
    ) and (driven.app.host is not None) and _taken(driven)  # fmt: skip


def _taken(driven: Driven) -> bool:
    """Say whether the tools of every connected server can be called."""
    assert driven.app.host is not None
    named = {spec.server.server for spec in driven.app.host.tools() if spec.server is not None}
    up = {s.name for s in driven.app.host.servers() if s.state is ServerState.CONNECTED}
    return up <= named


def _in(house: House, monkeypatch: pytest.MonkeyPatch, test: Callable[[], Awaitable[None]]) -> None:
    monkeypatch.chdir(house.workspace)
    for name, value in house.extra.items():
        monkeypatch.setenv(name, value)
    run_async(test)


def _results(driven: Driven) -> list[ToolMessage]:
    assert driven.app.host is not None
    return [m for m in driven.app.host.messages() if isinstance(m, ToolMessage)]


def test_a_whole_run_with_an_answer_for_the_session(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write(server("srv", "echo"))
    turns = [
        [say("Let me see. "), call("srv__echo", text="one")],
        call("srv__echo", text="one"),
        call("srv__echo", text="two"),
        say("All done."),
    ]

    async def test() -> None:
        async with _chat(house) as kage:
            await kage.type("greet")
            await kage.press("enter")
            await kage.until(lambda: kage.panel_open, "the question")
            assert "hi" not in kage.draft
            await kage.guard_over()
            await kage.press("2")  # for the session: the same call does not ask again
            await kage.until(lambda: len(_results(kage)) == 2, "both calls of the rule ran")
            await kage.until(lambda: kage.panel_open, "other arguments ask again")
            await kage.guard_over()
            await kage.press("4")
            await kage.until(lambda: "All done." in kage.transcript, "the reply")
        outcomes = [str(message.outcome) for message in _results_of(house)]
        assert outcomes == ["ok", "ok", "refused"]

    with ScriptedModel(turns) as model:
        house.use(model)
        _in(house, monkeypatch, test)
    verdicts = [r["verdict"] for r in house.records() if r["kind"] == "decision"]
    assert verdicts == ["allow", "allow", "deny"]
    assert verify(house.data / "decisions") == []


def _results_of(house: House) -> list[ToolMessage]:
    from kage.sessions.store import SessionStore

    store = SessionStore(house.data / "sessions")
    held = store.load(store.list()[0].id)
    return [m for m in held.messages if isinstance(m, ToolMessage)]


def test_a_grant_for_good_holds_in_the_next_kage_until_the_tool_changes(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write(server("srv", "changer"))

    async def first() -> None:
        async with _chat(house) as kage:
            await kage.type("go")
            await kage.press("enter")
            await kage.until(lambda: kage.panel_open, "the question")
            await kage.guard_over()
            await kage.press("3")
            await kage.until(lambda: "done 1" in kage.transcript, "the reply")

    async def second() -> None:
        async with _chat(house) as kage:
            await kage.type("go")
            await kage.press("enter")
            await kage.until(lambda: kage.panel_open, "mutate asks, victim did not")
            assert [m.name for m in _results(kage)] == ["srv__victim"]
            await kage.guard_over()
            await kage.press("1")
            await kage.until(lambda: len(_results(kage)) == 2, "mutate ran")
            await kage.until(lambda: "done 2" in kage.transcript, "the reply")
            assert _results(kage)[-1].outcome is Outcome.NEVER_SENT  # it is held
            await kage.type("/mcp pins")
            await kage.press("enter")
            await kage.until(lambda: isinstance(kage.app.screen, PinsScreen), "what is held")
            await kage.until(lambda: kage.app.hearing.pinning.sheet.ready, "keys count")
            await kage.press("1")
            await kage.until(lambda: not isinstance(kage.app.screen, PinsScreen), "accepted")
            await kage.type("go on")
            await kage.press("enter")
            await kage.until(lambda: kage.panel_open, "the grant was for what it was before")
            await kage.guard_over()
            await kage.press("4")
            await kage.until(lambda: "done 3" in kage.transcript, "the reply")

    with ScriptedModel(
        [
            call("srv__victim"), say("done 1"),
            call("srv__victim"), call("srv__mutate", how="describe"),
            call("bash", command="sleep 1"), call("srv__victim"), say("done 2"),
            call("srv__victim"), say("done 3"),
        ]
    ) as model:  # fmt: skip
        house.use(model)
        house.write(server("srv", "changer"), '[permissions.tools.bash]\nallow = ["sleep *"]')
        _in(house, monkeypatch, first)
        _in(house, monkeypatch, second)


def test_escape_interrupts_and_keeps_the_partial_reply(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    silence = threading.Event()

    async def test() -> None:
        async with _chat(house) as kage:
            await kage.type("tell")
            await kage.press("enter")
            await kage.until(lambda: "first half" in kage.transcript, "the reply begins")
            await kage.press("escape")
            assert kage.app.host is not None
            await kage.until(lambda: kage.app.host and not kage.app.host.running, "it stops")
            last = kage.app.host.messages()[-1]
            assert isinstance(last, AssistantMessage)
            assert (last.text.strip(), last.stop) == ("The first half", Stop.INTERRUPTED)
            assert "first half" in kage.transcript
            silence.set()

    with ScriptedModel([[say("The first half "), hold(silence)]]) as model:
        house.use(model)
        _in(house, monkeypatch, test)


def test_an_error_of_the_model_keeps_the_draft_and_the_session(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.llm import fail

    async def test() -> None:
        async with _chat(house) as kage:
            await kage.type("precious words")
            await kage.press("enter")
            await kage.until(lambda: kage.draft == "precious words", "the draft is back")
            assert kage.transcript.count("ANTHROPIC_API_KEY") == 1
            await kage.press("enter")
            await kage.until(lambda: "here it is" in kage.transcript, "the second try")

    with ScriptedModel([fail(401), say("here it is")]) as model:
        house.use(model)
        _in(house, monkeypatch, test)


def test_restart_replaces_a_server_and_a_failing_one_keeps_the_old(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write(
        server("srv", "echo"),
        server("frail", "restart_breaks", "--counter", house.home / "count"),
        "[permissions.mcp]\nsrv = 'allow'\nfrail = 'allow'",
    )

    async def test() -> None:
        async with _chat(house) as kage:
            host = kage.app.host
            assert host is not None
            before = {status.name: status.pid for status in host.servers()}
            await kage.type("/mcp restart srv")
            await kage.press("enter")
            await kage.until(
                lambda: {s.name: s.pid for s in host.servers()}["srv"] not in (None, before["srv"]),
                "a new process serves",
            )
            await kage.type("/mcp restart frail")
            await kage.press("enter")
            await kage.until(lambda: "it is locked" in kage.transcript, "the reason")
            assert kage.transcript.count("frail ended before it answered") == 1
            assert "the old one serves on" in kage.transcript
            assert {s.name: s.pid for s in host.servers()}["frail"] == before["frail"]
            await kage.type("/mcp restart frial")
            await kage.press("enter")
            await kage.until(lambda: "Did you mean frail" in kage.remark, "the nearest name")
            await kage.press("ctrl+c")
            await kage.type("go")
            await kage.press("enter")
            await kage.until(lambda: "both answered" in kage.transcript, "the run")
            assert [str(m.outcome) for m in _results(kage)] == ["ok", "ok"]

    with ScriptedModel(
        [[call("srv__echo", text="a"), call("frail__echo", text="b")], say("both answered")]
    ) as model:
        house.use(model)
        _in(house, monkeypatch, test)


def test_clear_begins_a_new_conversation_and_resume_brings_the_old_one_back(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with _chat(house) as kage:
            await kage.type("the first thing")
            await kage.press("enter")
            await kage.until(lambda: "first answer" in kage.transcript, "the reply")
            old = kage.app.status.session_id
            await kage.type("/clear")
            await kage.press("enter")
            await kage.until(lambda: kage.app.status.session_id != old, "a new session")
            assert "first answer" not in kage.transcript
            await kage.type("the second thing")
            await kage.press("enter")
            await kage.until(lambda: "second answer" in kage.transcript, "the reply")
            assert len(model.requests[1].messages) == 1  # nothing of the old one
            await kage.type(f"/resume {old}")
            await kage.press("enter")
            await kage.until(lambda: kage.app.status.session_id == old, "the old session")
            await kage.until(lambda: "first answer" in kage.transcript, "it is shown")
            await kage.type("go on")
            await kage.press("enter")
            await kage.until(lambda: "third answer" in kage.transcript, "the reply")
            assert len(model.requests[2].messages) == 3

    with ScriptedModel([say("first answer"), say("second answer"), say("third answer")]) as model:
        house.use(model)
        _in(house, monkeypatch, test)


def test_a_session_another_kage_holds_is_not_resumed_twice(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with _chat(house) as kage:
            await kage.type("mine")
            await kage.press("enter")
            await kage.until(lambda: "the answer" in kage.transcript, "the reply")
            name = kage.app.status.session_id
            import asyncio

            ended = await asyncio.to_thread(house.kage, "-p", "also mine", "--resume", name)
            assert ended.code == 1
            assert "open in" in ended.err or "process" in ended.err, ended.err
            assert ended.out == ""

    with ScriptedModel([], then=say("the answer")) as model:
        house.use(model)
        _in(house, monkeypatch, test)
        assert len(model.requests) == 1
