"""The record of one server is bounded, redacted and never in the way."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.core.redact import Redactor
from kage.mcp.client.servers.journal import MAX_ENTRIES, MAX_STRAYS, Journal


def test_the_last_lines_stay_in_memory_and_all_go_to_the_file(tmp_path: Path) -> None:
    journal = Journal("one", folder=tmp_path / "journal")
    for number in range(5000):
        journal.stderr(f"line {number}")
    journal.close()
    assert len(journal.lines()) == 2000
    assert journal.last(2) == ("line 4998", "line 4999")
    assert journal.last(0) == ()
    assert journal.counters.lines == 5000
    assert journal.path is not None
    written = journal.path.read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in written] == [f"line {n}" for n in range(5000)]
    assert journal.path.stat().st_mode & 0o077 == 0
    assert journal.path.parent.stat().st_mode & 0o077 == 0


def test_the_file_is_made_with_the_first_line(tmp_path: Path) -> None:
    journal = Journal("one", folder=tmp_path / "journal")
    journal.stray("x")
    journal.trace("x")
    journal.flush()
    journal.close()
    assert not (tmp_path / "journal").exists()


def test_the_file_is_rotated_at_its_limit(tmp_path: Path) -> None:
    journal = Journal("one", folder=tmp_path, max_bytes=10_000)
    for number in range(3000):
        journal.stderr(f"line {number}")
    journal.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.log", "one.log.1"]
    assert all(path.stat().st_size <= 10_000 for path in tmp_path.iterdir())
    assert (tmp_path / "one.log").read_text().splitlines()[-1].endswith("line 2999")


def test_lines_added_after_close_are_written_too(tmp_path: Path) -> None:
    journal = Journal("one", folder=tmp_path)
    journal.stderr("first")
    journal.close()
    journal.stderr("second")
    journal.close()
    assert [line.split()[1] for line in (tmp_path / "one.log").read_text().splitlines()] == [
        "first",
        "second",
    ]


def test_secrets_are_taken_out_before_anything_is_kept(tmp_path: Path) -> None:
    redactor = Redactor()
    redactor.add("TOKEN", "s3cret-value")
    journal = Journal("one", folder=tmp_path, redact=redactor)
    journal.stderr("token is s3cret-value")
    journal.stray("token is s3cret-value")
    journal.trace("token is s3cret-value", method="tools/call", id=7, size=30, direction="out")
    journal.close()
    kept = (*journal.lines(), *journal.strays(), *(entry.text for entry in journal.entries()))
    assert set(kept) == {"token is [redacted:TOKEN]"}
    assert "s3cret" not in (tmp_path / "one.log").read_text()


def test_everything_is_bounded() -> None:
    journal = Journal("one")
    for number in range(MAX_ENTRIES * 2):
        journal.trace("x" * 10_000, id="i" * 1000, method="m" * 1000)
        journal.stray(f"{number}" * 5000)
    journal.stderr("x" * 1_000_000)
    assert len(journal.entries()) == MAX_ENTRIES
    assert len(journal.strays()) == MAX_STRAYS
    assert journal.counters.strays == MAX_ENTRIES * 2
    assert max(map(len, journal.strays())) <= 2000
    assert len(journal.lines()[0]) <= 4000
    entry = journal.entries()[0]
    assert (len(entry.text), len(entry.method), len(str(entry.id))) == (2000, 200, 200)


@pytest.mark.parametrize("obstacle", ["file", "folder", "link", "fifo"])
def test_a_file_that_cannot_be_written_is_told_once_and_memory_goes_on(
    obstacle: str, tmp_path: Path
) -> None:
    folder = tmp_path / "journal"
    target = tmp_path / "target"
    if obstacle == "file":
        folder.write_text("in the way")
    else:
        folder.mkdir()
        place = folder / "one.log"
        if obstacle == "folder":
            place.mkdir()
        elif obstacle == "link":
            place.symlink_to(target)
        else:
            os.mkfifo(place)
    journal = Journal("one", folder=folder)
    for number in range(10):
        journal.stderr(f"line {number}")
    journal.close()
    assert "journal" in journal.fault
    assert len(journal.lines()) == 10
    assert not target.exists()


def test_a_full_disk_is_survived(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    journal = Journal("one", folder=tmp_path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # writing more fails, as on a full disk
    try:
        for number in range(5000):
            journal.stderr(f"line {number} {'x' * 50}")
        journal.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "one.log" in journal.fault
    assert len(journal.lines()) == 2000
    journal.stderr("after")
    journal.close()
    assert journal.last(1) == ("after",)


@given(st.text(max_size=50))
def test_no_name_leads_out_of_the_folder(name: str) -> None:
    journal = Journal(name, folder=Path("/somewhere"))
    assert journal.path is not None
    assert journal.path.parent == Path("/somewhere")
    assert journal.path.name not in {"", ".", ".."}


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_can_be_kept(text: str) -> None:
    journal = Journal("one")
    journal.stderr(text)
    journal.stray(text)
    journal.trace(text)
    assert journal.lines() == (text,)


def test_odd_text_can_be_written(tmp_path: Path) -> None:
    journal = Journal("one", folder=tmp_path)
    journal.stderr("half \ud800 pair")
    journal.close()
    assert journal.fault == ""
    assert b"half ? pair" in (tmp_path / "one.log").read_bytes()
