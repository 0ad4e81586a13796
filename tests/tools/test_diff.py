"""Diffs: right, bounded, and never slow."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kage.tools import diff

TEXT = st.lists(st.sampled_from(["a", "b", "", "c c", "\\ x"]), max_size=30).map("\n".join)


def test_equal_texts_have_no_diff() -> None:
    assert diff.unified("a\n", "a\n", name="x") == ""


def test_a_missing_last_newline_is_shown_as_git_does() -> None:
    shown = diff.unified("a\n", "a", name="x")
    assert shown == "--- x\n+++ x\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n"


def test_far_changes_get_hunks_of_their_own() -> None:
    old = [str(n) for n in range(100)]
    new = [*old[:10], "X", *old[11:90], "Y", *old[91:]]
    shown = diff.unified("\n".join(old) + "\n", "\n".join(new) + "\n", name="x")
    assert shown.count("@@ -") == 2
    assert "@@ -8,7 +8,7 @@" in shown


def test_huge_inputs_are_bounded_in_time_and_size() -> None:
    old = "x\ny\n" * 200_000
    new = "y\nx\nz\n" * 200_000
    shown = diff.unified(old, new, name="x")
    assert shown.count("\n") <= diff.MAX_LINES + 1
    assert "left out" in shown


def test_a_gigantic_line_is_clipped() -> None:
    assert len(diff.unified("a" * 10_000_000, "b" * 10_000_000, name="x")) < 2000


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=TEXT, new=TEXT)
def test_patch_makes_the_new_text_of_the_old_one(
    tmp_path_factory: pytest.TempPathFactory, old: str, new: str
) -> None:
    if not old or not new or old == new:
        return
    folder: Path = tmp_path_factory.mktemp("diff")
    (folder / "f").write_text(old)
    shown = diff.unified(old, new, name="f")
    done = subprocess.run(
        ["patch", "--quiet", "f"],
        cwd=folder,
        input=shown,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr + shown
    assert (folder / "f").read_text() == new


@given(old=TEXT, new=TEXT)
def test_the_counts_agree_with_the_diff(old: str, new: str) -> None:
    shown = diff.unified(old, new, name="f").split("\n")[2:]
    added = sum(line.startswith("+") for line in shown)
    removed = sum(line.startswith("-") for line in shown)
    assert diff.counts(old, new) == (added, removed)
