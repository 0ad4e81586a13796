"""The chat on a real terminal with a real engine, servers, a scripted model and real signals."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.llm import ScriptedModel, call, hold, say
from tests.proof.house import House, server
from tests.tui.terminal import Terminal
from tests.waiting import wait_for

ARMED = "▮▮▮▮"  # an answer counts from now on
QUIT = "\x11"
ALTERNATE_ON, ALTERNATE_OFF = b"\x1b[?1049h", b"\x1b[?1049l"


@contextmanager
def _chat(house: House, *, ready: str) -> Iterator[Terminal]:
    """Start kage on a terminal and wait until ``ready`` is on its screen."""
    with house.terminal() as terminal:
        terminal.until(ready)
        yield terminal


def _focus_panel(terminal: Terminal) -> None:
    """Press tab and wait until the panel shows that it has the keys."""
    line = next(n for n, text in enumerate(terminal.screen.display) if "1 yes" in text)
    before = terminal.screen.buffer[line][3]
    terminal.send("\t")
    wait_for(lambda: terminal.read() or terminal.screen.buffer[line][3] != before)


def _interrupted(terminal: Terminal) -> bool:
    """Press ctrl+c, as often as it takes; say whether kage is gone."""
    terminal.send("\x03")
    terminal.read(0.1)
    return terminal.process.poll() is not None


def _given_back(terminal: Terminal) -> None:
    assert terminal.modes_restored()
    assert terminal.raw.count(ALTERNATE_ON) == terminal.raw.count(ALTERNATE_OFF) == 1
    assert b"Traceback" not in terminal.raw


def test_a_whole_run_with_type_ahead_and_an_answer(house: House) -> None:
    seen = house.home / "seen"
    house.write(server("srv", "echo", "--record", seen))
    with ScriptedModel(
        [
            [say("Let me look. "), call("srv__echo", text="hi there")],
            lambda request: say(f"It said: {request.last_result}"),
        ]
    ) as model:
        house.use(model)
        with _chat(house, ready="srv 9") as terminal:
            terminal.send("greet\r")
            for _ in range(400):
                terminal.send("y")
                terminal.read(0.01)
                if "Allow" in terminal.text:
                    break
            terminal.send("1yy")
            terminal.until(ARMED)
            assert "> y" in terminal.text  # what was typed before it opened is in the draft
            assert "tools/call" not in seen.read_text()
            _focus_panel(terminal)  # a draft keeps its keys until tab leaves it
            terminal.send("1")
            terminal.until("It said: hi there")
            assert "> y" in terminal.text  # and it is still there
            terminal.send(QUIT)
            assert terminal.ended() == 0
            _given_back(terminal)
            house.empty()
    assert model.unused == 0
    decisions = [r for r in house.records() if r["kind"] == "decision"]
    assert [(r["verdict"], r["who"]) for r in decisions] == [("allow", "person")]


def test_no_means_no_and_the_model_is_told(house: House) -> None:
    seen = house.home / "seen"
    house.write(server("srv", "echo", "--record", seen))
    with ScriptedModel(
        [call("srv__echo", text="x"), lambda request: say(f"I heard: {request.last_result}")]
    ) as model:
        house.use(model)
        with _chat(house, ready="srv 9") as terminal:
            terminal.send("greet\r")
            terminal.until(ARMED)
            terminal.send("4")
            terminal.until("I heard: The person refused")
            terminal.send(QUIT)
            assert terminal.ended() == 0
    assert "tools/call" not in seen.read_text()


def test_escape_keeps_what_was_said_and_the_next_prompt_works(house: House) -> None:
    silence = threading.Event()
    with ScriptedModel([[say("The first half "), hold(silence)], say("A second answer")]) as model:
        house.use(model)
        with _chat(house, ready="scripted") as terminal:
            terminal.send("tell me\r")
            terminal.until("The first half")
            terminal.send("\x1b")
            terminal.until("interrupted")
            assert "The first half" in terminal.text
            terminal.send("again\r")
            terminal.until("A second answer")
            terminal.send(QUIT)
            assert terminal.ended() == 0
        silence.set()
        said = [message["role"] for message in model.requests[1].messages]
        assert said == ["user", "assistant", "user"]  # the partial reply is part of the talk


def test_a_broken_config_starts_with_what_is_sound_and_names_the_mistake(house: House) -> None:
    house.write("[mcp.servers.bad]\ncomand = 'x'", server("srv", "echo"))
    with ScriptedModel([], then=say("a fine answer")) as model:
        house.use(model)
        with _chat(house, ready="mcp.servers.bad.comand") as terminal:
            assert "did you mean" in terminal.text
            terminal.until("srv 9")
            terminal.send("hello\r")
            terminal.until("a fine answer")
            terminal.send(QUIT)
            assert terminal.ended() == 0
        assert "srv__echo" in model.requests[0].tools


def test_a_server_that_fails_is_one_card_and_its_last_words_follow_the_screen(
    house: House,
) -> None:
    quick = "{ delay = 0.05, max_delay = 0.1, max_attempts = 1 }"
    house.write(server("bad", "exits", "--code", 3, restart=quick), server("srv", "echo"))
    with ScriptedModel([], then=say("a fine answer")) as model:
        house.use(model)
        with _chat(house, ready="bad") as terminal:
            terminal.until("✗ bad: ended")
            terminal.until("│ line 3: cannot find module")
            terminal.until("srv 9")
            assert terminal.text.count("✗ bad: ended") == 1
            terminal.send("hello\r")
            terminal.until("a fine answer")
            terminal.send(QUIT)
            assert terminal.ended() == 0
            after = terminal.raw[terminal.raw.rindex(ALTERNATE_OFF) :].decode()
            assert "[bad] line 3: cannot find module" in after
        assert "srv__echo" in model.requests[0].tools


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_leaves_no_process_within_six_seconds(
    house: House, number: signal.Signals
) -> None:
    house.write(server("deaf", "deaf"), server("kin", "grandchild", "--deaf", "--setsid"))
    silence = threading.Event()
    with ScriptedModel([[say("begun"), hold(silence)]]) as model:
        house.use(model)
        with _chat(house, ready="scripted") as terminal:
            terminal.send("go\r")
            terminal.until("begun")
            wait_for(lambda: len(house.processes()) >= 4, what="every server is up")
            os.kill(terminal.process.pid, number)
            house.empty()
            assert terminal.ended() == (128 + number if number != signal.SIGKILL else -number)
            if number != signal.SIGKILL:
                _given_back(terminal)
        silence.set()


def test_a_closed_window_leaves_no_process(house: House) -> None:
    house.write(server("deaf", "deaf"))
    with _chat(house, ready="offline") as terminal:
        terminal.hang_up()
        house.empty()


def test_without_a_model_a_tool_is_called_by_hand(house: House) -> None:
    house.write(server("srv", "echo"))
    with _chat(house, ready="srv 9") as terminal:
        terminal.send("srv__echo text='by hand'\r")
        terminal.until(ARMED)
        terminal.send("1")
        terminal.until("by hand")
        terminal.send(QUIT)
        assert terminal.ended() == 0
    assert [r["verdict"] for r in house.records() if r["kind"] == "decision"] == ["allow"]


def test_who_cannot_wait_for_a_deaf_server_leaves_at_once(house: House) -> None:
    house.write(server("deaf", "deaf"))
    with _chat(house, ready="deaf 1") as terminal:
        terminal.send(QUIT)
        terminal.until("closing")
        terminal.send(QUIT)
        wait_for(lambda: terminal.read(0.01) or ALTERNATE_OFF in terminal.raw)
        wait_for(lambda: _interrupted(terminal))
        assert terminal.process.returncode == 128 + signal.SIGINT
        assert terminal.modes_restored()
        assert house.processes()  # the server lives; the watchdog sees to it
        house.empty()
