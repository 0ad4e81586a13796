"""Writing: whole files, in one step, keeping what should be kept."""

from __future__ import annotations

import asyncio
import os
import stat

import pytest

from tests.tools.helpers import Bench


def test_a_new_file_comes_with_its_folders(bench: Bench) -> None:
    result = bench.run("write", path="a/b/c.txt", content="one\ntwo")
    assert (bench.workspace / "a/b/c.txt").read_text() == "one\ntwo"
    assert result.summary == "created, 2 lines, 7 bytes"
    assert "+one" in result.diff


def test_replacing_says_so_and_shows_the_diff(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("old\nsame\n")
    result = bench.run("write", path="a.txt", content="new\nsame\n")
    assert result.summary.startswith("replaced")
    assert "-old\n+new\n same\n" in result.diff


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o640])
def test_permission_bits_are_kept(bench: Bench, mode: int) -> None:
    path = bench.workspace / "run.sh"
    path.write_text("old")
    path.chmod(mode)
    bench.run("write", path="run.sh", content="new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_set_uid_is_not_kept(bench: Bench) -> None:
    path = bench.workspace / "tool"
    path.write_text("old")
    path.chmod(0o4755)
    bench.run("write", path="tool", content="new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_a_new_file_follows_the_umask(bench: Bench) -> None:
    previous = os.umask(0o027)
    try:
        bench.run("write", path="a.txt", content="x")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((bench.workspace / "a.txt").stat().st_mode) == 0o640


def test_no_draft_is_left_behind(bench: Bench) -> None:
    bench.run("write", path="a.txt", content="x")
    (bench.workspace / "folder").mkdir()
    bench.refusal("write", path="folder", content="x")
    assert sorted(path.name for path in bench.workspace.iterdir()) == ["a.txt", "folder"]


def test_a_hard_link_elsewhere_keeps_its_content(bench: Bench) -> None:
    os.link(bench.outside / "secret.txt", bench.workspace / "twin.txt")
    bench.run("write", path="twin.txt", content="new")
    assert (bench.outside / "secret.txt").read_text() == "TOP-SECRET\n"


def test_a_file_in_place_of_a_folder_is_told(bench: Bench) -> None:
    (bench.workspace / "a").write_text("x")
    assert "a part of the path is a file" in bench.refusal("write", path="a/b.txt", content="x")


def test_a_name_that_ends_in_a_slash_is_no_file(bench: Bench) -> None:
    assert "folder" in bench.refusal("write", path="new/", content="x")


def test_half_a_character_is_refused(bench: Bench) -> None:
    assert "surrogate" in bench.refusal("write", path="a.txt", content="\ud800")
    assert not (bench.workspace / "a.txt").exists()


def test_fifty_megabytes_are_written(bench: Bench) -> None:
    result = bench.run("write", path="a.txt", content="0123456789\n" * 5_000_000)
    assert (bench.workspace / "a.txt").stat().st_size == 55_000_000
    assert len(result.diff) < 200_000


def test_a_preview_shows_the_diff_and_changes_nothing(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("old\n")
    tool = bench.tools["write"]
    shown = asyncio.run(tool.preview(bench.call(path="a.txt", content="new\n")))  # type: ignore[attr-defined]
    assert "-old\n+new\n" in shown
    assert (bench.workspace / "a.txt").read_text() == "old\n"
    nothing = asyncio.run(tool.preview(bench.call(path="../x", content="new\n")))  # type: ignore[attr-defined]
    assert nothing == ""
