"""The prompt: drafts, history, commands, steering and the ladder of ctrl+c."""

from __future__ import annotations

import pytest
from textual import events

from kage.core.commands import (
    EnableServer,
    Interrupt,
    NewSession,
    RestartServer,
    ResumeSession,
    RunShell,
    SetMode,
    SetModel,
    SubmitPrompt,
)
from kage.core.events import PromptsWaiting, RunEnd
from kage.core.gate import Mode
from kage.core.messages import Stop
from kage.providers.base import ModelInfo
from tests.tui.driving import driven, run
from tests.tui.fake_host import FakeHost, server


def test_enter_sends_and_leaves_an_empty_draft() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.type("hello there\n")
            assert it.host.prompts == ["hello there"]
            assert it.draft == ""

    run(main)


def test_an_empty_draft_is_not_sent() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.press("enter", "space", "enter")
            assert it.host.sent == []

    run(main)


@pytest.mark.parametrize("key", ["shift+enter", "ctrl+j"])
def test_a_new_line_is_one_key_away(key: str) -> None:
    async def main() -> None:
        async with driven() as it:
            await it.type("one")
            await it.press(key)
            await it.type("two\n")
            assert it.host.prompts == ["one\ntwo"]

    run(main)


def test_a_long_draft_is_seen_whole_and_never_takes_most_of_the_screen() -> None:
    async def main() -> None:
        async with driven() as it:
            prompt = it.app.chat.prompt

            def seen() -> int:
                return it.app.screen.find_widget(prompt).visible_region.height

            prompt.insert("word " * 40)
            await it.settle()
            assert seen() == prompt.wrapped_document.height > 1
            prompt.insert("word " * 300)
            await it.settle()
            assert prompt.wrapped_document.height > seen() > 3
            assert seen() <= it.app.size.height * 0.4

    run(main)


def test_what_is_typed_before_the_engine_is_up_is_kept_and_sent_when_it_is() -> None:
    async def main() -> None:
        host = FakeHost()
        host.may_start.clear()
        async with driven(host, wait=False) as it:
            await it.type("early\n")
            await it.type("draft")
            assert host.prompts == []
            assert "sent as soon as kage is ready" in it.screen_text()
            host.may_start.set()
            await it.until(lambda: host.prompts == ["early"])
            assert it.draft == "draft"
            assert "as soon as" not in it.screen_text()

    run(main)


def test_while_a_run_goes_enter_steers_and_tab_queues() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            await it.settle()
            await it.type("steer\n")
            await it.type("later")
            await it.press("tab")
            sent = it.host.commands(SubmitPrompt)
            assert [command.queue for command in sent] == [False, True]
            await it.publish(PromptsWaiting(steering=("steer",), queued=("later",)))
            text = it.screen_text()
            assert "joins the next turn  steer" in text
            assert "after this run  later" in text

    run(main)


def test_history_goes_back_at_the_edges_and_returns_to_the_draft() -> None:
    async def main() -> None:
        async with driven(FakeHost(history=("first", "second"))) as it:
            await it.until(lambda: it.app.status.recent == ())
            await it.type("draft")
            await it.press("up")
            assert it.draft == "second"
            await it.press("up", "up")
            assert it.draft == "first"
            await it.press("down", "down")
            assert it.draft == "draft"

    run(main)


def test_a_big_paste_collapses_and_is_sent_whole() -> None:
    async def main() -> None:
        text = "\n".join(f"line {number}" for number in range(100))
        async with driven() as it:
            await it.type("see ")
            it.app.post_message(events.Paste(text))
            await it.settle()
            assert it.app.chat.prompt.text.startswith("see [paste #1: 100 lines")
            await it.press("enter")
            assert it.host.prompts == [f"see {text}"]

    run(main)


def test_backspace_behind_a_collapsed_paste_deletes_it_whole() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.type("see ")
            it.app.post_message(events.Paste("x" * 5_000))
            await it.settle()
            await it.press("backspace")
            assert it.draft == "see "

    run(main)


def test_a_shell_line_is_run_as_the_persons_own() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.type("!ls -la\n")
            assert it.host.commands(RunShell) == [RunShell(line="ls -la")]

    run(main)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/model local:qwen", SetModel(model="local:qwen")),
        ("/permission ask", SetMode(mode=Mode.ASK)),
        ("/clear", NewSession()),
        ("/new", NewSession()),
        ("/resume abc", ResumeSession(session_id="abc")),
        ("/mcp restart weather", RestartServer(name="weather")),
        ("/mcp weather restart", RestartServer(name="weather")),
        ("/mcp enable weather", EnableServer(name="weather", enabled=True)),
        ("/mcp disable weather", EnableServer(name="weather", enabled=False)),
    ],
)
def test_commands_reach_the_engine(line: str, command: object) -> None:
    async def main() -> None:
        async with driven(FakeHost(servers=(server("weather"),))) as it:
            await it.type(line)
            await it.press("enter")
            assert it.host.sent == [command]
            assert it.draft == ""

    run(main)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("/modle", "Did you mean /model?"),
        ("/permission asq", "Did you mean ask?"),
        ("/mcp restart wether", "Did you mean weather?"),
        ("/mcp restrat weather", "did you mean /mcp restart?"),
        ("/help me", "takes less"),
    ],
)
def test_a_mistake_is_answered_with_the_nearest_and_keeps_the_draft(line: str, hint: str) -> None:
    async def main() -> None:
        async with driven(FakeHost(servers=(server("weather"),))) as it:
            await it.type(line)
            await it.press("enter")
            assert hint in it.remark
            assert it.draft == line
            assert it.host.sent == []

    run(main)


def test_the_palette_completes_with_tab_and_moves_with_the_arrows() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.type("/per")
            assert "/permission" in it.screen_text()
            await it.press("tab")
            assert it.draft == "/permission "
            await it.press("down", "tab")
            assert it.draft == "/permission ask"
            await it.press("enter")
            assert it.host.sent == [SetMode(mode=Mode.ASK)]

    run(main)


def test_enter_in_the_palette_takes_a_command_that_needs_no_more() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.type("/cle\n")
            assert it.host.sent == [NewSession()]

    run(main)


def test_esc_closes_the_palette_and_does_not_interrupt() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            await it.settle()
            await it.type("/mo")
            await it.press("escape")
            assert not it.app.chat.palette.display
            assert it.draft == "/mo"
            assert it.host.commands(Interrupt) == []

    run(main)


def test_models_are_completed_once_the_providers_have_answered() -> None:
    async def main() -> None:
        models = (ModelInfo(id="local:qwen", name="qwen", window=32_768),)
        async with driven(FakeHost(models=models)) as it:
            await it.type("/model q")
            await it.until(lambda: it.app.chat.palette.choices)
            await it.press("tab")
            assert it.draft == "/model local:qwen"

    run(main)


def test_ctrl_c_clears_the_draft_then_interrupts_then_arms_quit_then_quits() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            await it.type("draft")
            await it.press("ctrl+c")
            assert it.draft == ""
            assert it.host.commands(Interrupt) == []
            await it.press("ctrl+c")
            assert len(it.host.commands(Interrupt)) == 1
            it.host.reply("par", stop=Stop.INTERRUPTED)
            it.host.finish_run(RunEnd.INTERRUPTED)
            await it.settle()
            await it.press("ctrl+c")
            assert it.remark == "ctrl+c again quits"
            await it.pilot.press("ctrl+c")
            await it.until(lambda: it.host.closed)

    run(main)


def test_a_draft_cleared_with_ctrl_c_can_be_fetched_back() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.type("precious")
            await it.press("ctrl+c", "up")
            assert it.draft == "precious"

    run(main)


def test_a_failed_run_gives_the_prompt_back_unless_there_is_a_draft() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run("do it")
            it.host.finish_run(RunEnd.FAILED, "The key was refused", "401", "Check the key")
            await it.settle()
            assert it.draft == "do it"
            await it.press("ctrl+c")
            await it.type("newer")
            it.host.start_run("do it again")
            it.host.finish_run(RunEnd.FAILED, "The key was refused", "401", "Check the key")
            await it.settle()
            assert it.draft == "newer"

    run(main)


def test_the_draft_survives_screens_and_resizing() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.type("keep me")
            await it.press("f1", "escape", "ctrl+g", "escape")
            await it.pilot.resize_terminal(1, 1)
            await it.pilot.resize_terminal(120, 40)
            await it.settle()
            assert it.draft == "keep me"
            assert it.app.chat.prompt.has_focus

    run(main)


def test_a_bad_key_binding_is_told_on_the_empty_screen() -> None:
    async def main() -> None:
        async with driven(keys={"ctrl+y": "modls"}) as it:
            assert 'names no action: "modls"' in it.screen_text()

    run(main)


def test_a_key_of_the_config_works() -> None:
    async def main() -> None:
        async with driven(keys={"ctrl+y": "help", "ctrl+enter": "send", "enter": "newline"}) as it:
            await it.type("a\nb")
            await it.press("ctrl+enter")
            assert it.host.prompts == ["a\nb"]
            await it.press("ctrl+y")
            assert it.app.screen is not it.app.chat

    run(main)


def test_what_is_typed_between_two_ctrl_c_disarms_the_first() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.press("ctrl+c")
            assert it.remark == "ctrl+c again quits"
            await it.type("x")
            assert it.remark == ""
            await it.press("ctrl+c", "ctrl+c")
            assert it.remark == "ctrl+c again quits"
            assert it.app.is_running
            assert it.host.closed == 0

    run(main)


def test_the_mode_that_is_set_already_is_said_to_be() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.type("/permission default\n")
            assert it.remark == "The permission mode is default already"
            assert it.draft == ""
            assert it.host.sent == []

    run(main)


def test_a_server_nobody_knows_is_answered_with_the_nearest() -> None:
    async def main() -> None:
        async with driven(FakeHost(servers=(server("echo"),))) as it:
            await it.type("/mcp restart ecoh\n")
            assert it.remark == "There is no server ecoh. Did you mean echo?"
            assert it.draft == "/mcp restart ecoh"

    run(main)
