"""Cutting: never over the limit, on borders, with the whole kept in a private file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kage.tools.truncate import shorten


def test_short_text_is_left_alone(tmp_path: Path) -> None:
    done = shorten("hello", limit=10, scratch=tmp_path / "s", name="x")
    assert (done.text, done.path, done.total) == ("hello", None, 5)
    assert not (tmp_path / "s").exists()


def test_the_whole_is_kept_in_a_file_only_its_owner_reads(tmp_path: Path) -> None:
    text = "".join(f"line {n}\n" for n in range(2000))
    done = shorten(text, limit=2000, scratch=tmp_path / "s", name="srv__tool/../x")
    assert done.path is not None
    assert done.path.parent == tmp_path / "s"
    assert done.path.read_text() == text
    assert stat.S_IMODE(done.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(done.path.parent.stat().st_mode) == 0o700
    assert str(done.path) in done.text
    assert f"of {len(text):,} characters" in done.text


def test_the_cut_falls_on_a_line_border(tmp_path: Path) -> None:
    text = "".join(f"line {n}\n" for n in range(2000))
    done = shorten(text, limit=2000, scratch=tmp_path, name="x")
    shown = done.text.split("\n[")[0]
    assert text.startswith(shown + "\n")


def test_head_and_tail_are_both_shown(tmp_path: Path) -> None:
    text = "".join(f"line {n}\n" for n in range(2000))
    done = shorten(text, limit=2000, scratch=tmp_path, name="x", keep="both")
    assert done.text.startswith("line 0\n")
    assert done.text.endswith("line 1999\n")
    assert "left out here" in done.text


def test_two_results_of_one_name_get_two_files(tmp_path: Path) -> None:
    first = shorten("a" * 1000, limit=500, scratch=tmp_path, name="x")
    second = shorten("b" * 1000, limit=500, scratch=tmp_path, name="x")
    assert first.path != second.path
    assert first.path is not None
    assert first.path.read_text() == "a" * 1000


def test_a_folder_that_cannot_be_made_costs_only_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = shorten("a" * 1000, limit=500, scratch=tmp_path / "file" / "s", name="x")
    assert done.path is None
    assert "could not be kept" in done.text


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(alphabet="ab\né\u0301👩\u200d\ufe0f\ud800", min_size=0, max_size=3000),
    limit=st.integers(0, 3000),
    keep=st.sampled_from(["head", "both"]),
)
def test_the_limit_holds_whatever_comes(
    tmp_path_factory: pytest.TempPathFactory, text: str, limit: int, keep: str
) -> None:
    scratch = tmp_path_factory.getbasetemp() / "scratch-any"
    done = shorten(text, limit=limit, scratch=scratch, name="x", keep=keep)  # type: ignore[arg-type]
    assert len(done.text) <= limit or len(text) <= limit
    if len(text) > limit > 500:
        head = done.text.split("\n[")[0]
        assert text.startswith(head)
    if done.path is not None:
        done.path.unlink()
