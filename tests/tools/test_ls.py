"""Listing: markers, hidden entries, caps, names nobody can misread."""

from __future__ import annotations

import os
from pathlib import Path

from tests.tools.helpers import Bench


def test_entries_are_sorted_and_marked(bench: Bench) -> None:
    (bench.workspace / "b").mkdir()
    (bench.workspace / "a.txt").write_text("x")
    (bench.workspace / "z").symlink_to("a.txt")
    os.mkfifo(bench.workspace / "pipe")
    assert bench.text("ls").split("\n") == ["a.txt", "b/", "pipe (a named pipe)", "z -> a.txt"]


def test_hidden_entries_are_counted_and_shown_on_request(bench: Bench) -> None:
    (bench.workspace / ".env").touch()
    assert "[1 hidden]" in bench.text("ls")
    assert bench.text("ls", hidden=True) == ".env"


def test_details_show_size_and_time(bench: Bench) -> None:
    path = bench.workspace / "a.txt"
    path.write_text("x" * 1500)
    os.utime(path, (0, 0))
    assert "1.5 kB" in bench.text("ls", details=True)
    assert "19" in bench.text("ls", details=True)


def test_the_cap_is_told(bench: Bench) -> None:
    for number in range(30):
        (bench.workspace / f"f{number:02}").touch()
    text = bench.text("ls", limit=10)
    assert "[10 of 30 entries shown" in text
    assert "f09" in text
    assert "f10" not in text


def test_an_empty_folder_says_so(bench: Bench) -> None:
    assert bench.text("ls") == "(the folder is empty)"


def test_names_cannot_act_on_a_terminal_or_fake_lines(bench: Bench) -> None:
    (bench.workspace / "a\x1b[31m\nfake").touch()
    (Path(os.fsdecode(os.fsencode(bench.workspace) + b"/raw\xff"))).touch()
    text = bench.text("ls")
    assert "\x1b" not in text
    assert len(text.split("\n")) == 2
    text.encode()  # no half characters


def test_a_file_is_described(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("x")
    assert "a.txt" in bench.text("ls", path="a.txt")


def test_a_missing_folder_is_an_error(bench: Bench) -> None:
    assert "does not exist" in bench.refusal("ls", path="nowhere")
