"""Every event of the engine, as the person sees it."""

from __future__ import annotations

from kage.core import events as ev
from kage.core.commands import Interrupt
from kage.core.content import Artifact, Text
from kage.core.events import RunEnd
from kage.core.gate import Mode
from kage.core.levels import Level
from kage.core.messages import AssistantMessage, Outcome, Stop, Thinking, UserMessage
from kage.core.servers import ServerState, Stage
from kage.tui.controllers.events import merged
from kage.tui.transcript.calls import ToolBlock
from tests.tui.driving import Driven, driven, run
from tests.tui.fake_host import FakeHost, call, decision, fault, result, server, tool


def _row(it: Driven, call_id: str = "c1") -> ToolBlock:
    block = it.app.transcript.block(call_id)
    assert isinstance(block, ToolBlock)
    return block


def test_a_whole_run_is_folded_from_prompt_to_answer() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run("which tests?")
            await it.publish(ev.TextStreamed(message_id="r1", text="Looking "))
            await it.publish(ev.TextStreamed(message_id="r1", text="now."))
            made = call()
            it.host.reply("Looking now.", stop=Stop.TOOLS, calls=(made,))
            await it.publish(ev.ToolQueued(call=made, spec=tool()))
            assert _row(it).row.state == "waiting"
            assert _row(it).row.label == "filesystem · read_file"
            await it.publish(ev.ToolStarted(call_id="c1", decision=decision()))
            await it.publish(ev.ToolProgressed(call_id="c1", progress=1, total=4, message="half"))
            await it.publish(ev.ToolPrinted(call_id="c1", text="out\n"))
            row = _row(it).row
            assert (row.state, row.progress, row.total, row.tail) == ("running", 1, 4, "out\n")
            await it.publish(ev.MessageAppended(message=result()))
            row = _row(it).row
            assert (row.state, row.seconds, row.summary) == ("ok", 0.031, "18 matches")
            await it.publish(ev.ContextMeasured(tokens=24_000, window=200_000, cost=0.031))
            it.host.finish_run()
            await it.settle()
            text = it.screen_text()
            assert "Looking now." in it.transcript
            assert "context 12%" in text
            assert "$0.03" in text
            assert "which tests?" in text

    run(main)


def test_esc_interrupts_and_the_partial_reply_stays() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            await it.publish(ev.TextStreamed(message_id="r1", text="half an ans"))
            await it.press("escape")
            assert len(it.host.commands(Interrupt)) == 1
            it.host.reply("half an ans", stop=Stop.INTERRUPTED)
            it.host.finish_run(RunEnd.INTERRUPTED)
            await it.settle()
            assert "half an ans" in it.transcript
            assert "interrupted" in it.transcript
            assert not it.app.status.running

    run(main)


def test_esc_while_idle_asks_for_nothing() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.press("escape")
            assert it.host.sent == []

    run(main)


def test_a_failed_run_is_one_card_with_reason_and_fix() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            it.host.finish_run(
                RunEnd.FAILED, "The key was refused", "401 from the API", "Set the key"
            )
            await it.settle()
            assert it.transcript.count("The key was refused") == 1
            assert "401 from the API" in it.transcript
            assert "Set the key" in it.transcript

    run(main)


def test_a_run_that_reached_a_limit_says_so() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            it.host.finish_run(RunEnd.LIMIT, "100 turns were used", "", "Go on with a new prompt")
            await it.settle()
            assert it.transcript.count("100 turns were used") == 1
            assert it.draft == ""

    run(main)


def test_a_reply_that_never_came_leaves_no_empty_block() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run(message_id="r9")
            await it.settle()
            assert it.app.transcript.block("r9") is not None
            it.host.finish_run(RunEnd.FAILED, "No connection")
            await it.settle()
            assert it.app.transcript.block("r9") is None

    run(main)


def test_a_call_without_a_result_ends_as_interrupted() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            it.host.reply("", stop=Stop.TOOLS, calls=(call(),))
            it.host.finish_run(RunEnd.INTERRUPTED)
            await it.settle()
            assert _row(it).row.state == "interrupted"

    run(main)


def test_each_outcome_is_told_on_its_row() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            calls = tuple(call(call_id=outcome.value) for outcome in Outcome)
            it.host.reply("", stop=Stop.TOOLS, calls=calls)
            for outcome in Outcome:
                it.host.publish(ev.MessageAppended(message=result("why", outcome.value, outcome)))
            await it.settle()
            for outcome in Outcome:
                assert _row(it, outcome.value).row.state == outcome.value

    run(main)


def test_a_retry_is_a_passing_line_that_goes_with_the_next_word() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            await it.publish(ev.ModelRetried(attempt=2, attempts=5, seconds=4, reason="overloaded"))
            assert it.remark == "overloaded; try 2 of 5 in 4 s"
            await it.publish(ev.TextStreamed(message_id="r1", text="a"))
            assert it.remark == ""
            assert "overloaded" not in it.transcript

    run(main)


def test_a_notice_is_a_card() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish(
                ev.Noticed(
                    level=Level.WARNING, what="The disk is full", why="28 EB", fix="Free some"
                )
            )
            for words in ("The disk is full", "28 EB", "Free some"):
                assert it.transcript.count(words) == 1

    run(main)


def test_a_resumed_conversation_is_shown_whole_and_says_what_was_dropped() -> None:
    async def main() -> None:
        async with driven() as it:
            messages = (
                UserMessage(content=(Text("old prompt"),)),
                AssistantMessage(
                    parts=(Thinking(text="hm"), Text("old answer"), call()),
                    model="m:x",
                    stop=Stop.TOOLS,
                ),
                result("old result"),
                AssistantMessage(parts=(Text("the end"),), model="m:x", stop=Stop.END),
            )
            await it.publish(
                ev.SessionOpened(
                    session_id="s2",
                    title="old title",
                    messages=messages,
                    dropped=("line 7 is cut",),
                )
            )
            for words in ("old prompt", "old answer", "the end", "line 7 is cut"):
                assert words in it.transcript
            assert _row(it).row.state == "ok"
            assert "old title" in it.screen_text()
            assert it.draft == ""

    run(main)


def test_a_new_session_clears_the_screen_but_not_the_draft() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run("something")
            it.host.finish_run()
            await it.type("draft")
            await it.publish(ev.SessionOpened(session_id="s2", title=""))
            assert it.transcript == ""
            assert it.draft == "draft"
            assert "folder" in it.screen_text()

    run(main)


def test_a_failing_server_is_exactly_one_card_however_often_it_is_tried_again() -> None:
    async def main() -> None:
        async with driven() as it:
            broken = fault()
            for attempt in range(1, 6):
                await it.publish(
                    ev.ServerChanged(
                        status=server(
                            state=ServerState.CONNECTING, fault=broken, attempt=attempt, attempts=5
                        ),
                        previous=ServerState.CONNECTED,
                    )
                )
            assert "trying again, 5 of 5" in it.transcript
            await it.publish(
                ev.ServerChanged(
                    status=server(state=ServerState.FAILED, fault=broken),
                    previous=ServerState.CONNECTING,
                )
            )
            text = it.transcript
            assert text.count("weather: ended before it answered") == 1
            for words in ("API_KEY is not set", "handshake", "exit code 1", "Error: no API_KEY",
                          "Set API_KEY in"):  # fmt: skip
                assert words in text
            assert "weather !" in it.screen_text()

    run(main)


def test_the_next_fault_of_a_recovered_server_is_a_card_of_its_own() -> None:
    async def main() -> None:
        async with driven() as it:
            for state in (ServerState.FAILED, ServerState.CONNECTED, ServerState.FAILED):
                broken = fault() if state is ServerState.FAILED else None
                await it.publish(
                    ev.ServerChanged(status=server(state=state, fault=broken), previous=None)
                )
            assert it.transcript.count("weather: ended before it answered") == 2

    run(main)


def test_a_failed_restart_of_a_serving_server_is_told_once() -> None:
    async def main() -> None:
        async with driven() as it:
            status = server(fault=fault(what="weather could not be restarted"))
            await it.publish(ev.ServerChanged(status=status, previous=ServerState.CONNECTED))
            await it.publish(ev.ServerChanged(status=status, previous=ServerState.CONNECTED))
            assert it.transcript.count("weather: could not be restarted") == 1

    run(main)


def test_tools_that_were_left_out_are_named_once() -> None:
    async def main() -> None:
        async with driven() as it:
            status = server(dropped=("bad_tool: its schema is no object",))
            for _ in range(3):
                await it.publish(ev.ServerChanged(status=status, previous=None))
            assert it.transcript.count("bad_tool: its schema is no object") == 1

    run(main)


def test_the_header_shows_each_server_and_its_state() -> None:
    async def main() -> None:
        servers = (
            server("filesystem", tools=14),
            server("github", ServerState.CONNECTING),
            server("weather", ServerState.FAILED, fault=fault()),
        )
        async with driven(FakeHost(servers=servers), size=(120, 30)) as it:
            line = it.screen_text().splitlines()[0]
            assert "filesystem 14" in line
            assert "github …" in line
            assert "weather !" in line
            assert "1 starting" in line

    run(main)


def test_another_model_and_mode_are_told_and_shown() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish(ev.ModelChanged(model="local:qwen", reason="you chose it"))
            assert "local:qwen answers from now on" in it.remark
            await it.publish(ev.ModeChanged(mode=Mode.ASK))
            assert "qwen · mode ask" in it.screen_text()

    run(main)


def test_the_spinner_runs_only_while_a_run_is_on() -> None:
    async def main() -> None:
        async with driven() as it:
            seen = [it.app.chat.ticking]
            it.host.start_run()
            await it.settle()
            seen.append(it.app.chat.ticking)
            assert "esc interrupts" in it.screen_text()
            it.host.finish_run()
            await it.settle()
            assert [*seen, it.app.chat.ticking] == [False, True, False]

    run(main)


def test_an_event_that_cannot_be_shown_is_one_card_and_the_app_goes_on() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish("no event", ev.ModeChanged(mode=Mode.DENY))
            assert it.transcript.count("Something in kage went wrong") == 1
            assert "Traceback" not in it.screen_text()
            assert it.app.status.mode is Mode.DENY
            await it.type("still here")
            assert it.draft == "still here"

    run(main)


def test_an_engine_that_cannot_start_is_told_and_the_draft_survives() -> None:
    async def main() -> None:
        host = FakeHost(fail_start=RuntimeError("boom"))
        host.may_start.clear()
        async with driven(host, wait=False) as it:
            await it.type("precious\n")
            host.may_start.set()
            await it.until(lambda: it.app.status.ready)
            assert "Something in kage went wrong while starting" in it.transcript
            assert it.draft == "precious"

    run(main)


def test_neighbouring_pieces_of_a_reply_are_joined_and_nothing_else() -> None:
    one, two = (ev.TextStreamed(message_id="a", text=text) for text in ("x", "y"))
    other = ev.TextStreamed(message_id="b", text="z")
    thought = ev.ThinkingStreamed(message_id="a", text="t")
    joined = ev.TextStreamed(message_id="a", text="xy")
    assert merged([one, two, other, thought, one]) == [joined, other, thought, one]


def test_a_restart_that_fails_is_told_once_though_the_engine_tells_it_twice() -> None:
    async def main() -> None:
        async with driven() as it:
            for _ in range(2):  # each time a person asks again is a fault of its own
                broken = fault()
                await it.publish(
                    ev.ServerChanged(status=server(state=ServerState.CONNECTING), previous=None),
                    ev.ServerChanged(
                        status=server(state=ServerState.FAILED, fault=broken), previous=None
                    ),
                    ev.Noticed(level=Level.ERROR, what=broken.what, why=broken.why, fix=broken.fix),
                )
            assert it.transcript.count("weather: ended before it answered") == 2

    run(main)


def test_a_server_that_came_back_says_so_on_its_card() -> None:
    async def main() -> None:
        async with driven() as it:
            status = server(state=ServerState.CONNECTING, fault=fault(), attempt=1, attempts=5)
            await it.publish(ev.ServerChanged(status=status, previous=ServerState.CONNECTED))
            await it.publish(ev.ServerChanged(status=server(), previous=ServerState.CONNECTING))
            assert "it is connected again" in it.transcript
            assert "trying again" not in it.transcript

    run(main)


def test_what_was_told_before_the_conversation_opened_stays() -> None:
    async def main() -> None:
        host = FakeHost()
        host.may_start.clear()
        async with driven(host, wait=False) as it:
            await it.settle()
            host.publish(ev.Noticed(level=Level.WARNING, what="config.toml has a mistake"))
            host.may_start.set()
            await it.until(lambda: it.app.status.ready)
            assert "config.toml has a mistake" in it.transcript

    run(main)


def test_what_stands_in_the_session_wins_over_what_was_streamed() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            await it.publish(ev.TextStreamed(message_id="r1", text="the key is hunter2"))
            it.host.reply("the key is [redacted:KEY]")
            await it.settle()
            assert "hunter2" not in it.transcript
            assert it.transcript.count("[redacted:KEY]") == 1

    run(main)


def test_ctrl_o_unfolds_the_last_call_and_folds_it_again() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            it.host.reply("", stop=Stop.TOOLS, calls=(call(),))
            await it.publish(ev.MessageAppended(message=result("first\nsecond line of it")))
            assert "second line of it" not in it.screen_text()
            await it.press("ctrl+o")
            await it.until(lambda: "second line of it" in it.screen_text())
            await it.press("ctrl+o")
            await it.until(lambda: "second line of it" not in it.screen_text())

    run(main)


def test_the_conversation_scrolls_by_page_and_goes_back_to_its_end() -> None:
    async def main() -> None:
        async with driven() as it:
            text = "\n\n".join(f"paragraph {number}" for number in range(60))
            it.host.start_run()
            it.host.reply(text)
            await it.until(lambda: "paragraph 59" in it.screen_text())
            await it.press("pageup")
            await it.until(lambda: "paragraph 59" not in it.screen_text())
            await it.press("ctrl+end")
            await it.until(lambda: "paragraph 59" in it.screen_text())

    run(main)


def test_a_reply_that_broke_off_in_view_stays_and_the_next_try_is_a_new_one() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            await it.publish(
                ev.TextStreamed(message_id="r1", text="half an ans"),
                ev.ModelRetried(attempt=1, attempts=3, seconds=2, reason="the stream ended"),
                ev.TurnStarted(run_id="run", turn=1, message_id="r2", model="m"),
                ev.TextStreamed(message_id="r2", text="a whole answer"),
            )
            it.host.reply("a whole answer", message_id="r2")
            await it.settle()
            assert "half an ans\n(the stream broke off; trying again in 2 s)" in it.transcript
            assert it.transcript.count("a whole answer") == 1
            assert it.transcript.index("half an ans") < it.transcript.index("a whole answer")

    run(main)


def test_a_try_that_showed_nothing_leaves_nothing_and_the_next_one_has_its_header() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            await it.publish(
                ev.ModelRetried(attempt=1, attempts=3, seconds=2, reason="overloaded"),
                ev.TurnStarted(run_id="run", turn=1, message_id="r2", model="test:model"),
            )
            it.host.reply("an answer", message_id="r2")
            await it.settle()
            assert "broke off" not in it.transcript
            assert "kage · test:model:\nan answer" in it.transcript

    run(main)


def test_a_failed_server_reads_as_a_sentence_with_stage_output_and_fix() -> None:
    async def main() -> None:
        missing = fault(
            stage=Stage.SPAWN, what="Cannot find nonexistent-cmd", exit_code=None, stderr=(),
            why=f"there is no program of that name on its PATH ({'/some/folder:' * 40})",
            fix="Install it",
        )  # fmt: skip
        died = fault(
            what="The server quits ended before it answered (exit code 3)", exit_code=3,
            why="it said: no module", stderr=("starting", "no module"),
        )  # fmt: skip
        async with driven() as it:
            for name, broken in (("bad", missing), ("quits", died)):
                status = server(name, ServerState.FAILED, fault=broken)
                await it.publish(ev.ServerChanged(status=status, previous=None))
            lines = it.transcript.splitlines()
            at = lines.index("bad: cannot find nonexistent-cmd")
            assert lines[at + 1].startswith("there is no program of that name on its PATH (/some/f")
            assert len(lines[at + 1]) < 76
            assert lines[at + 2 : at + 4] == ["stage: spawn", "→ Install it"]
            at = lines.index("quits: ended before it answered (exit code 3)")
            assert lines[at + 1 : at + 4] == ["stage: handshake", "starting", "no module"]

    run(main)


def test_what_is_asked_of_a_server_is_told_when_it_begins_and_once_when_it_is_done() -> None:
    async def main() -> None:
        host = FakeHost(servers=(server("weather", tools=3, pid=10),))
        async with driven(host) as it:
            await it.type("/mcp restart weather\n")
            assert it.remark == "restarting weather …"
            await it.publish(
                ev.ServerChanged(
                    status=server("weather", ServerState.DRAINING, pid=10), previous=None
                ),
            )
            assert it.remark == "restarting weather …"
            new = server("weather", tools=1, pid=11)
            await it.publish(ev.ServerChanged(status=new, previous=None))
            assert it.remark == "weather is restarted: 1 tool"
            await it.type("/mcp disable weather\n")
            assert it.remark == "stopping weather …"
            gone = server("weather", ServerState.DISABLED)
            await it.publish(ev.ServerChanged(status=gone, previous=None))
            assert it.remark == "weather is disabled for this session"
            await it.type("/mcp disable weather\n")
            assert it.remark == "weather is disabled already"
            await it.type("/mcp enable weather\n")
            broken = server("weather", ServerState.FAILED, fault=fault())
            await it.publish(ev.ServerChanged(status=broken, previous=None))
            assert it.remark == ""
            assert it.transcript.count("weather: ended before it answered") == 1

    run(main)


def test_a_restart_that_keeps_the_old_server_ends_in_its_card_alone() -> None:
    async def main() -> None:
        host = FakeHost(servers=(server("weather", tools=3, pid=10),))
        async with driven(host) as it:
            await it.type("/mcp restart weather\n")
            await it.publish(ev.Noticed(level=Level.ERROR, what="It failed; the old one serves on"))
            assert it.remark == ""
            assert it.transcript.count("the old one serves on") == 1

    run(main)


def test_a_result_that_was_kept_says_where_it_lies() -> None:
    async def main() -> None:
        async with driven() as it:
            path = "/data/sessions/s1/artifacts/00007-files__dump.csv"
            kept = Artifact(path=path, of="resource", mime="text/csv", size=12)
            it.host.start_run("dump it")
            made = call()
            it.host.reply("", stop=Stop.TOOLS, calls=(made,))
            await it.publish(ev.ToolQueued(call=made, spec=tool()))
            await it.publish(ev.ToolStarted(call_id="c1", decision=decision()))
            summary = "1 file kept"
            message = result(summary=summary, content=(kept,))
            await it.publish(ev.MessageAppended(message=message))
            await it.settle()
            assert summary in it.screen_text()
            assert path in _row(it).source()

    run(main)
