"""The decision log read as cases: backwards, joined with outcomes, and no further than asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.permissions.decisions import cases as cases_module
from kage.permissions.decisions.cases import Case, backwards, cases, newest
from kage.permissions.decisions.log import DecisionLog
from kage.permissions.decisions.tail import Tail
from tests.permissions.decisions.test_log import MONTH, Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "decisions"


@pytest.fixture
def log(folder: Path, clock: Clock) -> DecisionLog:
    return DecisionLog(folder, clock=clock)


def decide(log: DecisionLog, name: str, **fields: Any) -> None:
    assert log.append("decision", {"id": name, "verdict": "allow", **fields})


def end(log: DecisionLog, name: str, outcome: str = "ok") -> None:
    assert log.append("outcome", {"decision": name, "outcome": outcome, "seconds": 0.5})


def ids(found: Iterator[Case]) -> list[str]:
    return [case.text("id") for case in found]


@given(
    raw=st.lists(st.sampled_from([b"a", b"bcd", b"\n", b"\n\n", b"e" * 9])).map(b"".join),
    block=st.integers(1, 12),
)
def test_lines_come_backwards_with_their_offsets(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes, block: int
) -> None:
    file = tmp_path_factory.getbasetemp() / "lines"
    file.write_bytes(raw)
    wanted, at = [], 0
    for line in raw.splitlines(keepends=True):
        if line.endswith(b"\n"):
            wanted.append((at, line[:-1]))
        at += len(line)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases_module, "_BLOCK", block)
        assert list(backwards(file)) == wanted[::-1]


def test_a_decision_comes_with_how_its_call_ended(folder: Path, log: DecisionLog) -> None:
    decide(log, "d1")
    decide(log, "d2")
    end(log, "d2", "tool_error")
    end(log, "d1")
    decide(log, "d3")
    found = list(cases(folder))
    assert [(case.text("id"), case.outcome, case.seconds) for case in found] == [
        ("d1", "ok", 0.5),
        ("d2", "tool_error", 0.5),
        ("d3", "", None),
    ]
    assert found[0].plain()["ended"]["outcome"] == "ok"
    assert found[2].plain()["ended"] is None
    json.dumps([case.plain() for case in found])


def test_an_outcome_of_the_next_month_is_found(
    folder: Path, log: DecisionLog, clock: Clock
) -> None:
    decide(log, "d1")
    clock.now += MONTH
    end(log, "d1")
    decide(log, "d2")
    assert [case.outcome for case in cases(folder)] == ["ok", ""]
    assert [case.file for case in cases(folder)] == ["2026-02.jsonl", "2026-03.jsonl"]


def test_the_newest_are_given_oldest_first_and_no_more_is_read(
    folder: Path, log: DecisionLog, clock: Clock
) -> None:
    for number in range(6):
        decide(log, f"d{number}")
        clock.now += MONTH
    (folder / "2026-02.jsonl").unlink()
    (folder / "2026-02.jsonl").mkdir()  # whoever opens it fails
    assert ids(cases(folder, most=3)) == ["d3", "d4", "d5"]
    assert ids(cases(folder, since="2026-05-03T00:00:00.000Z")) == ["d3", "d4", "d5"]
    assert next(newest(folder)).text("id") == "d5"
    with pytest.raises(OSError):
        list(cases(folder))


def test_what_cannot_be_read_is_passed_over(folder: Path, log: DecisionLog) -> None:
    decide(log, "d1")
    decide(log, "d2")
    (file,) = folder.glob("*.jsonl")
    first, second = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b'nonsense\n\n[1]\n{"n":"x"}\n' + first + b"\xff\xfe\n" + second + b'{"n":3')
    assert ids(cases(folder)) == ["d1", "d2"]
    assert list(cases(folder.parent / "nowhere")) == []


def test_cases_are_streamed_and_not_held(folder: Path, log: DecisionLog) -> None:
    """A hundred thousand records are a matter of places in files, whatever they weigh."""
    decide(log, "d1", arguments={"text": "x" * 9000})
    (file,) = folder.glob("*.jsonl")
    file.write_bytes(file.read_bytes() * 2000)  # 18 MB; the chain is of no matter here
    import tracemalloc

    tracemalloc.start()
    try:
        assert sum(1 for _ in cases(folder)) == 2000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def test_following_begins_behind_a_whole_line_whoever_writes_right_then(
    folder: Path, log: DecisionLog
) -> None:
    decide(log, "d1")
    (file,) = folder.glob("*.jsonl")
    with file.open("ab") as stream:
        stream.write(b'{"n":2,' + b"x" * 4_000)  # its writer dies; the next one cuts it off
    tail = Tail(folder)
    decide(log, "d2")
    assert [case.text("id") for case in tail.fresh() if case.kind == "decision"] == ["d2"]


def test_following_gives_what_is_new_and_then_how_it_ended(
    folder: Path, log: DecisionLog, clock: Clock
) -> None:
    assert list(Tail(folder).fresh()) == []
    decide(log, "d1")
    tail = Tail(folder)
    assert list(tail.fresh()) == []
    decide(log, "d2")
    assert ids(tail.fresh()) == ["d2"]
    (file,) = folder.glob("*.jsonl")
    with file.open("ab") as stream:
        stream.write(b'{"n":3,')  # somebody writes right now
    assert list(tail.fresh()) == []
    clock.now += MONTH
    end(log, "d2")
    decide(log, "d3")
    found = list(tail.fresh())
    assert [(case.text("id"), case.outcome) for case in found if case.kind != "gap"] == [
        ("d2", "ok"),
        ("d3", ""),
    ]
    assert list(tail.fresh()) == []
