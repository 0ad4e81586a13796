"""Every way to tamper with the decision log is found, and the place of it is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kage.permissions.decisions.chain import HEAD
from kage.permissions.decisions.log import DecisionLog
from kage.permissions.decisions.proof import Noted, prove
from tests.permissions.decisions.test_log import MONTH, Clock

Tampering = Callable[[Path, list[Path]], object]
A, B, C = "2026-02.jsonl", "2026-03.jsonl", "2026-04.jsonl"
CHANGED = "it was changed"
STRAY = "it does not belong here"


@pytest.fixture(scope="module")
def three_months(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log") / "decisions"
    clock = Clock()
    log = DecisionLog(folder, clock=clock)
    for month in range(3):
        for step in range(5):
            number = 5 * month + step + 1
            assert log.append("decision", {"id": f"d{number}", "arguments": {"n": number}})
        clock.now += MONTH
    assert [file.name for file in sorted(folder.glob("*.jsonl"))] == [A, B, C]
    return folder


def lines(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines(keepends=True)


def changed(file: int, *edits: Callable[[list[bytes]], object]) -> Tampering:
    def tamper(folder: Path, files: list[Path]) -> None:
        found = lines(files[file])
        for edit in edits:
            edit(found)
        files[file].write_bytes(b"".join(found))

    return tamper


def edited(line: int) -> Callable[[list[bytes]], object]:
    def edit(found: list[bytes]) -> None:
        found[line - 1] = found[line - 1].replace(b'"id":"d', b'"id":"x')

    return edit


def inserted(line: int, raw: bytes) -> Callable[[list[bytes]], object]:
    return lambda found: found.insert(line - 1, raw)


def doubled(line: int) -> Callable[[list[bytes]], object]:
    return lambda found: found.insert(line, found[line - 1])


def deleted(line: int) -> Callable[[list[bytes]], object]:
    return lambda found: found.pop(line - 1)


def kept(count: int) -> Callable[[list[bytes]], object]:
    def cut(found: list[bytes]) -> None:
        del found[count:]

    return cut


def swapped(found: list[bytes]) -> None:
    found[1], found[2] = found[2], found[1]


def headed(**values: object) -> Tampering:
    def tamper(folder: Path, files: list[Path]) -> None:
        head = json.loads((folder / HEAD).read_bytes())
        (folder / HEAD).write_text(json.dumps({**head, **values}))

    return tamper


def swapped_files(folder: Path, files: list[Path]) -> None:
    first, second = files[0].read_bytes(), files[1].read_bytes()
    files[0].write_bytes(second)
    files[1].write_bytes(first)


def merged(folder: Path, files: list[Path]) -> None:
    files[0].write_bytes(files[0].read_bytes() + files[1].read_bytes())
    files[1].unlink()


def moved(folder: Path, files: list[Path]) -> None:
    first, second = lines(files[0]), lines(files[1])
    files[0].write_bytes(b"".join([*first, *second[:2]]))
    files[1].write_bytes(b"".join(second[2:]))


def a_folder(folder: Path, files: list[Path]) -> None:
    files[0].unlink()
    files[0].mkdir()


def a_head_folder(folder: Path, files: list[Path]) -> None:
    (folder / HEAD).unlink()
    (folder / HEAD).mkdir()


def shortened(by: int) -> Tampering:
    def tamper(folder: Path, files: list[Path]) -> None:
        files[2].write_bytes(files[2].read_bytes()[:-by])

    return tamper


def all_but(*names: str) -> Tampering:
    def tamper(folder: Path, files: list[Path]) -> None:
        for file in folder.iterdir():
            if file.name not in names:
                file.unlink()

    return tamper


TABLE: list[tuple[str, Tampering, str, int, str]] = [
    ("edit the first line", changed(0, edited(1)), A, 1, CHANGED),
    ("edit a line in the middle", changed(1, edited(3)), B, 3, CHANGED),
    ("edit the last line of a month", changed(0, edited(5)), A, 5, CHANGED),
    ("edit the last line", changed(2, edited(5)), C, 5, "not the one the head names"),
    ("delete the first line", changed(0, deleted(1)), A, 1, "record 1 is missing"),
    ("delete a line in the middle", changed(1, deleted(3)), B, 3, "record 8 is missing"),
    ("delete the last line of a month", changed(0, deleted(5)), B, 1, "record 5 is missing"),
    ("delete the last line", changed(2, deleted(5)), C, 0, "ends with record 14"),
    ("repeat the first line", changed(0, doubled(1)), A, 2, STRAY),
    ("repeat a line in the middle", changed(1, doubled(3)), B, 4, STRAY),
    ("repeat the last line", changed(2, doubled(5)), C, 6, STRAY),
    ("insert a forged line", changed(1, inserted(3, b'{"n":8,"prev":"x"}\n')), B, 3, STRAY),
    ("insert an empty line", changed(1, inserted(3, b"\n")), B, 3, "no record"),
    ("insert half a line", changed(1, inserted(3, b'{"n":8,\n')), B, 3, "no record"),
    ("insert a deep line", changed(1, inserted(3, b"[" * 99_999 + b"\n")), B, 3, "no record"),
    ("insert a huge number", changed(1, inserted(1, b'{"n":%s}\n' % (b"9" * 5000))), B, 1, "no re"),
    ("append a forged line", changed(2, inserted(6, b'{"n":16,"prev":"x"}\n')), C, 6, STRAY),
    ("swap two lines", changed(1, swapped), B, 2, STRAY),
    ("cut a month short", changed(0, kept(2)), B, 1, "records 3 to 5 are missing"),
    ("cut the end", changed(2, kept(2)), C, 0, "ends with record 12, the head says 15"),
    ("empty a month", changed(1, kept(0)), C, 1, "records 6 to 10 are missing"),
    ("cut within the last line", shortened(9), C, 5, "cut"),
    ("take the last line end", shortened(1), C, 5, "cut"),
    ("delete the first month", lambda d, f: f[0].unlink(), B, 1, "records 1 to 5 are missing"),
    ("delete a month", lambda d, f: f[1].unlink(), C, 1, "records 6 to 10 are missing"),
    ("delete the last month", lambda d, f: f[2].unlink(), B, 0, "ends with record 10"),
    ("swap two months", swapped_files, A, 1, "records 1 to 5 are missing"),
    ("put two months into one", merged, A, 6, "it is of 2026-03"),
    ("move lines into another month", moved, A, 6, "it is of 2026-03"),
    ("rename the last month", lambda d, f: f[2].rename(d / "2027-01.jsonl"), HEAD, 0, "ends in"),
    ("add a file", lambda d, f: (d / "2027-01.jsonl").write_text('{"n":1}\n'), "", 1, STRAY),
    ("put a folder in place of a month", a_folder, A, 0, "cannot be read"),
    ("delete the head", lambda d, f: (d / HEAD).unlink(), HEAD, 0, "missing"),
    ("empty the head", lambda d, f: (d / HEAD).write_bytes(b""), HEAD, 0, "missing"),
    ("put a folder in place of the head", a_head_folder, HEAD, 0, "missing"),
    ("raise the head's count", headed(count=16), C, 0, "the head says 16"),
    ("lower the head's count", headed(count=14), C, 0, "the head says 14"),
    ("change the head's hash", headed(head="0" * 64), C, 5, "not the one the head names"),
    ("change the head's file", headed(file=A), HEAD, 0, f"ends in {A}"),
    ("change the head's size", headed(size=7), HEAD, 0, "7 bytes"),
    ("delete every month", all_but(HEAD, "lock"), "", 0, "ends with record 0, the head says 15"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tamper", "file", "line", "what"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_every_tampering_is_named(
    three_months: Path, tmp_path: Path, tamper: Tampering, file: str, line: int, what: str
) -> None:
    folder = tmp_path / "decisions"
    shutil.copytree(three_months, folder)
    assert prove(folder).problems == ()
    tamper(folder, sorted(folder.glob("*.jsonl")))
    proof = prove(folder)
    assert proof.unfinished is None
    first = proof.problems[0]
    assert what in first.what, proof.problems
    assert first.line == line
    assert not file or first.file.name == file


def test_one_bad_place_is_one_problem_and_the_rest_is_proven(
    three_months: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "decisions"
    shutil.copytree(three_months, folder)
    for file in sorted(folder.glob("*.jsonl"))[:2]:
        found = lines(file)
        edited(2)(found)
        deleted(4)(found)
        file.write_bytes(b"".join(found))
    assert [(problem.file.name, problem.line) for problem in prove(folder).problems] == [
        (A, 2),
        (A, 4),
        (B, 2),
        (B, 4),
    ]


def test_a_log_written_anew_is_found_by_what_was_noted(three_months: Path, tmp_path: Path) -> None:
    proof = prove(three_months)
    noted = Noted(count=proof.count, digest=proof.digest[:16])
    assert prove(three_months, noted).problems == ()
    clock = Clock()
    forged = DecisionLog(tmp_path / "forged", clock=clock)
    for number in range(20):
        forged.append("decision", {"id": f"d{number}"})
    assert prove(tmp_path / "forged").problems == ()
    for folder in (tmp_path / "forged", tmp_path / "nothing"):
        (problem,) = prove(folder, noted).problems
        assert "record 15, which was noted" in problem.what


def test_gaps_that_kage_noted_are_told_apart_from_problems(tmp_path: Path) -> None:
    folder = tmp_path / "decisions"
    log = DecisionLog(folder)
    log.append("decision", {"id": "d1"})
    (folder / HEAD).unlink()
    log.append("decision", {"id": "d2"})
    proof = prove(folder)
    assert proof.problems == ()
    (gap,) = proof.gaps
    assert (gap.line, "head was missing" in gap.what) == (2, True)
