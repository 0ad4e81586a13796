"""What only a real terminal shows: modes, signals, stderr, a closed window, a crash."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.tui.terminal import Terminal, demo
from tests.waiting import wait_for

READY = "recent"  # on the empty screen once the host has answered
ALTERNATE_ON, ALTERNATE_OFF = b"\x1b[?1049h", b"\x1b[?1049l"


def _whole(terminal: Terminal) -> None:
    """Check that the terminal was given back."""
    assert terminal.modes_restored()
    assert terminal.raw.count(ALTERNATE_ON) == terminal.raw.count(ALTERNATE_OFF) == 1
    assert terminal.raw.rindex(b"\x1b[?25h") > terminal.raw.rindex(b"\x1b[?25l")
    assert b"Traceback" not in terminal.raw


def test_a_whole_conversation_with_approvals_and_what_is_left_on_the_screen(tmp_path: Path) -> None:
    with demo(tmp_path / "kage.log") as terminal:
        terminal.until(READY)
        terminal.send("which tests?\r")
        terminal.until("Allow filesystem · read_file?")
        terminal.until("1 of 2 ── ▮▮▮▮")
        terminal.send("1")
        terminal.until("2 of 2 ── ▮▮▮▮")
        assert "Allow filesystem · edit_file?" in terminal.text
        terminal.send("4")
        terminal.until("Done: both tests pass.")
        terminal.send("\x11")
        assert terminal.ended() == 0
        _whole(terminal)
        after = terminal.raw[terminal.raw.rindex(ALTERNATE_OFF) :].decode()
        for words in ("which tests?", "Done: both tests pass.", "session s1"):
            assert words in after
        assert "[weather] Error: no API_KEY" in after
        assert "[weather]     at main.js:3 \u241b[31mred" in after or "at main.js:3" in after
        assert "\x1b[31m" not in after


def test_type_ahead_into_an_opening_panel_never_answers(tmp_path: Path) -> None:
    with demo(tmp_path / "kage.log") as terminal:
        terminal.until(READY)
        terminal.send("go\r")
        for _ in range(400):
            terminal.send("y")
            terminal.read(0.01)
            if "Allow filesystem" in terminal.text:
                break
        terminal.send("yyy")
        terminal.until("1 of 2 ── ▮▮▮▮")
        assert "1 of 2" in terminal.text
        assert "> y" in terminal.text


def test_resizing_redraws_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")  # what a shell may export wins over nothing
    monkeypatch.setenv("LINES", "24")
    with demo(tmp_path / "kage.log") as terminal:
        terminal.until(READY)
        terminal.send("keep")
        for columns, lines in ((20, 5), (1, 1), (200, 60), (100, 30)):
            terminal.resize(columns, lines)
            terminal.read(0.1)
        terminal.until("> keep")
        terminal.send("\x11")
        assert terminal.ended() == 0
        _whole(terminal)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_gives_the_terminal_back(tmp_path: Path, number: signal.Signals) -> None:
    with demo(tmp_path / "kage.log") as terminal:
        terminal.until(READY)
        terminal.process.send_signal(number)
        assert terminal.ended() == 128 + number
        _whole(terminal)


def test_a_signal_in_the_middle_of_a_reply_gives_the_terminal_back(tmp_path: Path) -> None:
    with demo(tmp_path / "kage.log") as terminal:
        terminal.until(READY)
        terminal.send("go\r")
        terminal.until("look at")
        terminal.process.terminate()
        assert terminal.ended() == 128 + signal.SIGTERM
        _whole(terminal)


def test_a_closed_window_ends_kage(tmp_path: Path) -> None:
    with demo(tmp_path / "kage.log") as terminal:
        terminal.until(READY)
        terminal.hang_up()
        wait_for(lambda: terminal.process.poll() is not None, what="kage leaves")


def test_a_mistake_of_kages_own_is_a_card_and_a_line_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "kage.log"
    with demo(log, "crash") as terminal:
        terminal.until(READY)
        terminal.send("go\r")
        terminal.until("Something in kage went wrong")
        terminal.send("\x11")
        assert terminal.ended() == 0
        _whole(terminal)
    assert "Traceback" in log.read_text()


def test_a_screen_that_cannot_be_drawn_ends_in_one_line(tmp_path: Path) -> None:
    log = tmp_path / "kage.log"
    with demo(log, "broken") as terminal:
        terminal.until(READY)
        terminal.send("go\r")
        assert terminal.ended() == 1
        _whole(terminal)
        assert terminal.raw.count(b"kage stopped: ") == 1
    assert "Traceback" in log.read_text()


def test_what_is_written_to_stderr_goes_into_the_log_and_not_over_the_screen(
    tmp_path: Path,
) -> None:
    log = tmp_path / "kage.log"
    with demo(log, "noise") as terminal:
        terminal.until(READY)
        terminal.send("go\r")
        terminal.until("Allow filesystem")
        assert b"noise on file descriptor" not in terminal.raw
        terminal.send("\x03")
        terminal.until("interrupted")
        terminal.send("\x11")
        assert terminal.ended() == 0
    assert "noise on file descriptor 2" in log.read_text()
    assert os.stat(log).st_mode & 0o077 == 0


def test_an_idle_screen_draws_nothing(tmp_path: Path) -> None:
    with demo(tmp_path / "kage.log") as terminal:
        terminal.until(READY)
        wait_for(lambda: _quiet(terminal), what="two seconds without a byte")


def _quiet(terminal: Terminal) -> bool:
    before = len(terminal.raw)
    terminal.read(2.0)
    return len(terminal.raw) == before


def test_what_is_typed_before_the_first_frame_is_not_lost(tmp_path: Path) -> None:
    with demo(tmp_path / "kage.log") as terminal:
        terminal.send("early bird")
        terminal.until("> early bird")


def test_closing_that_takes_a_while_says_so_on_the_given_back_screen(tmp_path: Path) -> None:
    with demo(tmp_path / "kage.log", "slow-close") as terminal:
        terminal.until(READY)
        terminal.send("\x11\x11")
        assert terminal.ended() == 0
        _whole(terminal)
        after = terminal.raw[terminal.raw.rindex(ALTERNATE_OFF) :].decode()
        assert "never awaited" not in after
        assert after.count("kage: closing 2 servers …") == 1
