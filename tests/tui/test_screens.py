"""The screens over the chat, every size, every theme, and words of strangers."""

from __future__ import annotations

import time

import pytest
from textual.theme import BUILTIN_THEMES

from kage.core import events as ev
from kage.core.commands import EnableServer, RestartServer, ResumeSession, SetModel
from kage.core.events import RunEnd
from kage.core.gate import Mode
from kage.core.levels import Level
from kage.core.messages import Outcome
from kage.core.servers import ServerState
from kage.core.sessions import SessionInfo
from kage.providers.base import ModelInfo
from kage.tui.theme import choose
from tests.tui.driving import driven, run
from tests.tui.fake_host import (
    WORKSPACE,
    FakeHost,
    asked,
    call,
    fault,
    question,
    result,
    server,
    tool,
)

EVIL = "[bold]x[/bold] [@click=app.exit]y[/] \x1b[2J\x1b]0;t\x07\u202e[/"


def _session(name: str, title: str = "a title") -> SessionInfo:
    now = time.time()
    return SessionInfo(
        id=name, title=title, workspace=WORKSPACE, model="m:x", started=now, changed=now,
        messages=3, size=10,
    )  # fmt: skip


def test_the_servers_screen_shows_state_reason_log_and_tools() -> None:
    async def main() -> None:
        servers = (
            server("filesystem", tools=1),
            server("weather", ServerState.FAILED, fault=fault()),
        )
        host = FakeHost(
            servers=servers, tools=(tool(),), logs={"weather": ("first line", "last line")}
        )
        async with driven(host, size=(100, 30)) as it:
            await it.press("ctrl+g", "up")
            text = it.screen_text()
            assert "filesystem" in text and "connected" in text and "read_file" in text
            await it.press("down", "tab")
            text = it.screen_text()
            assert "API_KEY is not set" in text
            assert "exit code 1" in text
            assert "last line" in text

    run(main)


@pytest.mark.parametrize(
    ("key", "command"),
    [
        ("r", RestartServer(name="weather")),
        ("e", EnableServer(name="weather", enabled=True)),
        ("d", EnableServer(name="weather", enabled=False)),
    ],
)
def test_the_servers_screen_restarts_enables_and_disables(key: str, command: object) -> None:
    async def main() -> None:
        async with driven(FakeHost(servers=(server("weather"),))) as it:
            await it.press("ctrl+g", key)
            assert it.host.sent == [command]

    run(main)


def test_the_servers_screen_follows_what_happens() -> None:
    async def main() -> None:
        async with driven(FakeHost(servers=(server("weather", ServerState.CONNECTING),))) as it:
            await it.press("ctrl+g")
            assert "connecting" in it.screen_text()
            await it.publish(
                ev.ServerChanged(status=server("weather"), previous=ServerState.CONNECTING)
            )
            assert "connected" in it.screen_text()

    run(main)


def test_mcp_log_opens_the_log_of_that_server() -> None:
    async def main() -> None:
        host = FakeHost(servers=(server("a"), server("b")), logs={"b": ("hello from b",)})
        async with driven(host) as it:
            await it.type("/mcp log b\n")
            assert "hello from b" in it.screen_text()

    run(main)


def test_the_servers_screen_without_servers_says_how_to_add_one() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.press("ctrl+g")
            assert "No server is configured" in it.screen_text()

    run(main)


def test_a_model_is_chosen_by_filter_and_enter() -> None:
    async def main() -> None:
        models = (ModelInfo(id="a:one", name="one"), ModelInfo(id="b:two", name="two", window=1000))
        async with driven(FakeHost(models=models)) as it:
            await it.press("ctrl+l")
            await it.until(lambda: "a:one" in it.screen_text())
            await it.type("two\n")
            assert it.host.sent == [SetModel(model="b:two")]
            assert it.app.screen is it.app.chat

    run(main)


def test_a_conversation_is_chosen_from_the_list() -> None:
    async def main() -> None:
        sessions = (_session("s2", "first"), _session("s3", "second"), _session("s1", "this one"))
        async with driven(FakeHost(sessions=sessions)) as it:
            await it.press("ctrl+r")
            await it.until(lambda: "second" in it.screen_text())
            assert "this one" not in it.screen_text()
            await it.press("down", "enter")
            assert it.host.sent == [ResumeSession(session_id="s3")]

    run(main)


def test_the_help_lists_every_command_and_key() -> None:
    async def main() -> None:
        async with driven(size=(100, 200)) as it:
            await it.press("question_mark")
            text = it.screen_text()
            for words in (
                "/model",
                "/permission",
                "ctrl+q",
                "[servers]",
                "no, and say what instead",
            ):
                assert words in text

    run(main)


def test_the_empty_screen_tells_how_to_connect_a_model_and_what_is_recent() -> None:
    async def main() -> None:
        host = FakeHost(model="offline:tools", sessions=(_session("s9", "fix the test"),))
        async with driven(host) as it:
            await it.until(lambda: it.app.status.recent)
            text = it.screen_text()
            for words in ("ANTHROPIC_API_KEY", "/work/shop", "default:", "fix the test"):
                assert words in text

    run(main)


@pytest.mark.parametrize(
    "size", [(1, 1), (2, 1), (10, 3), (20, 5), (40, 10), (80, 24), (200, 60), (500, 200)]
)
def test_every_screen_draws_at_every_size(size: tuple[int, int]) -> None:
    async def main() -> None:
        host = FakeHost(
            servers=(server("weather", ServerState.FAILED, fault=fault()), server("b")),
            tools=(tool(),), models=(ModelInfo(id="a:b", name="b"),), sessions=(_session("s5"),),
        )  # fmt: skip
        async with driven(host, size=size) as it:
            await it.type("/mo")
            await it.press("ctrl+c")
            for key in ("ctrl+g", "ctrl+l", "ctrl+r", "f1"):
                await it.press(key)
                await it.press("escape")
            await it.publish(asked(question(arguments={"t": "word " * 500}, preview="+a\n-b")))
            await it.guard_over()
            await it.press("o", "d", "escape")
            await it.guard_over()
            await it.press("5", "escape")
            assert it.panel_open

    run(main)


def test_a_storm_of_resizes_does_no_harm() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            await it.publish(
                asked(question()), ev.TextStreamed(message_id="r1", text="# Title\n" * 50)
            )
            for step in range(40):
                await it.pilot.resize_terminal(1 + (step * 37) % 150, 1 + (step * 13) % 50)
            await it.pilot.resize_terminal(80, 24)
            await it.settle()
            assert it.panel_open
            assert "1 yes" in it.screen_text()

    run(main)


def test_the_prompt_and_the_answers_are_in_view_at_eighty_by_twenty_four() -> None:
    async def main() -> None:
        async with driven() as it:
            arguments = {f"argument_{n}": "value " * 100 for n in range(30)}
            await it.publish(asked(question(arguments=arguments, warnings=("w1", "w2"))))
            lines = it.screen_text().splitlines()
            assert any("1 yes" in line and "5 no, and say" in line for line in lines)
            assert lines[-2].lstrip().startswith(">")
            assert any("Allow filesystem" in line for line in lines)

    run(main)


@pytest.mark.parametrize("theme", sorted(BUILTIN_THEMES))
def test_every_theme_draws_the_chat_and_the_panel(theme: str) -> None:
    async def main() -> None:
        async with driven(theme=theme) as it:
            await it.publish(asked(question(red=True, preview="+a\n-b")))
            assert it.app.theme == theme
            assert "1 yes" in it.screen_text()

    run(main)


def test_without_colours_everything_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def main() -> None:
        async with driven() as it:
            await it.publish(asked(question()))
            assert "1 yes" in it.screen_text()

    run(main)


@pytest.mark.parametrize(
    ("wanted", "environ", "theme"),
    [("", {}, "ansi-dark"), ("", {"COLORFGBG": "0;15"}, "ansi-light"), ("nord", {}, "nord")],
)
def test_the_terminals_own_colours_are_the_default(
    wanted: str, environ: dict[str, str], theme: str
) -> None:
    assert choose(wanted, environ) == (theme, "")


def test_a_misspelt_theme_is_told() -> None:
    theme, notice = choose("nrod", {})
    assert theme == "ansi-dark"
    assert 'did you mean "nord"' in notice


def test_words_of_strangers_are_never_parsed_and_never_act() -> None:
    async def main() -> None:
        broken = fault(what=EVIL, why=EVIL, fix=EVIL, stderr=(EVIL,))
        bad = server(
            EVIL, ServerState.FAILED, fault=broken, command=EVIL, version=EVIL, protocol=EVIL,
            origin=EVIL, dropped=(EVIL,),
        )  # fmt: skip
        spec = tool(EVIL, server=EVIL, description=EVIL)
        host = FakeHost(
            model=EVIL, servers=(bad, server("b", dropped=(EVIL,))), tools=(spec,),
            models=(ModelInfo(id=EVIL, name=EVIL),), sessions=(_session("s7", EVIL),),
            history=(EVIL,), logs={EVIL: (EVIL,)},
        )  # fmt: skip
        async with driven(host, size=(100, 40), keys={EVIL: EVIL}) as it:
            seen = [it.screen_text()]
            for key in ("ctrl+g", "ctrl+l", "ctrl+r"):
                await it.press(key)
                await it.press("tab")
                seen.append(it.screen_text())
                await it.press("escape")
            await it.type("/model ")
            await it.type("/mcp restart ")
            await it.press("ctrl+c")
            made = question(
                spec=spec, arguments={EVIL: EVIL}, warnings=(EVIL,), scopes=(EVIL, EVIL + "2"),
                reason=EVIL, preview=f"+{EVIL}\n-{EVIL}", pinned_since=EVIL,
            )  # fmt: skip
            it.host.start_run(EVIL)
            evil_call = call(EVIL, **{EVIL: EVIL})
            it.host.reply(EVIL, calls=(evil_call,))
            await it.publish(
                ev.ToolQueued(call=evil_call, spec=spec),
                ev.ToolProgressed(call_id="c1", progress=1, total=None, message=EVIL),
                ev.ToolPrinted(call_id="c1", text=EVIL),
                ev.ModelRetried(attempt=1, attempts=2, seconds=1, reason=EVIL),
                ev.Noticed(level=Level.ERROR, what=EVIL, why=EVIL, fix=EVIL),
                ev.PromptsWaiting(steering=(EVIL,), queued=(EVIL,)),
                ev.ModelChanged(model=EVIL + "2", reason=EVIL),
                ev.ToolsSwapped(server=EVIL, added=(EVIL,), removed=(), changed=()),
                asked(made),
            )
            seen.append(it.screen_text())
            await it.guard_over()
            await it.press("x", "d")
            seen.append(it.screen_text())
            await it.press("escape")
            await it.publish(
                ev.MessageAppended(message=result(EVIL, outcome=Outcome.TOOL_ERROR, diff=EVIL))
            )
            it.host.finish_run(RunEnd.FAILED, EVIL, EVIL, EVIL)
            await it.settle()
            seen.append(it.screen_text())
            text = "\n".join([*seen, it.transcript])
            assert "[bold]" in text
            assert "[@click=app.exit]" in text
            for character in "\x1b\x07\u202e":
                assert character not in text

    run(main)


def test_ctrl_c_closes_a_screen_over_the_chat() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.press("f1", "ctrl+c")
            assert it.app.screen is it.app.chat

    run(main)


def test_ctrl_q_closes_the_host_and_leaves() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.pilot.press("ctrl+q")
            await it.until(lambda: it.app.return_value == 0)
            assert it.host.closed == 1

    run(main)


def test_the_mode_is_set_from_the_palette() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.type("/permission\n")
            assert it.draft == "/permission "
            assert "every call asks you" in it.screen_text()
            await it.publish(ev.ModeChanged(mode=Mode.ASK))
            assert "mode ask" in it.screen_text().splitlines()[-1]

    run(main)


def test_a_long_text_loses_no_letter_where_it_is_folded() -> None:
    async def main() -> None:
        value = "".join(f"{number:04}" for number in range(400))
        async with driven(size=(80, 60)) as it:
            await it.publish(asked(question(arguments={"v": value})))
            await it.guard_over()
            await it.press("d")
            text = "".join(line.replace("│", "").strip() for line in it.screen_text().splitlines())
            assert value in text.replace(" ", "")

    run(main)


def test_without_colours_the_marked_entry_is_still_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def main() -> None:
        async with driven(FakeHost(servers=(server("one"), server("two")))) as it:
            await it.press("ctrl+g", "down")
            strips = it.app.screen._compositor.render_strips()
            (marked,) = [strip for strip in strips if strip.text.lstrip().startswith("two ")]
            (other,) = [strip for strip in strips if strip.text.lstrip().startswith("one ")]
            assert any(segment.style and segment.style.underline for segment in marked)
            assert not any(segment.style and segment.style.underline for segment in other)

    run(main)


def test_a_filter_that_leaves_nothing_says_so() -> None:
    async def main() -> None:
        async with driven(FakeHost(models=(ModelInfo(id="a:b", name="b"),))) as it:
            await it.press("ctrl+l")
            await it.type("zzz")
            assert "none of 1 matches" in it.screen_text()

    run(main)


def test_the_servers_screen_says_what_is_being_done_and_when_it_is_done() -> None:
    async def main() -> None:
        async with driven(FakeHost(servers=(server("one", pid=1),))) as it:
            await it.press("ctrl+g", "r")
            assert "restarting one …" in it.screen_text()
            await it.publish(ev.ServerChanged(status=server("one", pid=2), previous=None))
            assert "one is restarted: 3 tools" in it.screen_text()

    run(main)
