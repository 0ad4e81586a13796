"""The decision log: chained, shared, and honest about what it could not write."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import resource
import threading

import pytest

from kage.core.redact import Redactor
from kage.permissions.decisions import appender
from kage.permissions.decisions import log as log_module
from kage.permissions.decisions.chain import HEAD, Head, line_digest
from kage.permissions.decisions.log import DecisionLog, prove, read, verify
from tests.waiting import until

MONTH = 31 * 24 * 3600


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_770_000_000.0  # 2026-02-02

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "decisions"


@pytest.fixture
def log(folder, clock):
    return DecisionLog(folder, clock=clock)


def fill(log, count=5, start=0):
    for number in range(start, start + count):
        assert log.append("decision", {"id": f"d{number}", "arguments": {"n": number}})


def the_file(folder):
    (file,) = folder.glob("*.jsonl")
    return file


def test_each_record_carries_the_hash_of_the_one_before(folder, log):
    fill(log)
    assert verify(folder) == []
    records = list(read(folder))
    assert [record.number for record in records] == [1, 2, 3, 4, 5]
    assert [record.fields["id"] for record in records] == ["d0", "d1", "d2", "d3", "d4"]
    assert log.head().count == 5


def test_an_empty_or_missing_log_has_no_problems(folder, tmp_path):
    assert verify(folder) == []
    assert list(read(folder)) == []
    (tmp_path / "empty").mkdir()
    assert verify(tmp_path / "empty") == []


def test_the_chain_goes_on_across_months(folder, log, clock):
    fill(log, 2)
    clock.now += MONTH
    fill(log, 2, start=2)
    assert len(list(folder.glob("*.jsonl"))) == 2
    assert verify(folder) == []
    sorted(folder.glob("*.jsonl"))[0].unlink()
    assert verify(folder)


def test_a_clock_that_goes_back_does_not_reopen_a_finished_month(folder, log, clock):
    fill(log, 1)
    clock.now += MONTH
    fill(log, 1, start=1)
    clock.now -= MONTH
    fill(log, 1, start=2)
    assert verify(folder) == []


@pytest.mark.parametrize("line", range(5))
def test_an_edit_of_any_line_is_found_and_named(folder, log, line):
    fill(log)
    lines = the_file(folder).read_bytes().splitlines()
    lines[line] = lines[line].replace(b'"n":%d}' % line, b'"n":7}')
    the_file(folder).write_bytes(b"\n".join(lines) + b"\n")
    problems = verify(folder)
    assert problems
    assert [problem.line for problem in problems] == [line + 1]


@pytest.mark.parametrize("position", [0, 1, 100, 300, 700])
def test_a_flipped_byte_is_found(folder, log, position):
    fill(log)
    raw = bytearray(the_file(folder).read_bytes())
    raw[position] ^= 1
    the_file(folder).write_bytes(raw)
    assert verify(folder)


@pytest.mark.parametrize("line", range(5))
def test_a_deleted_line_is_found(folder, log, line):
    fill(log)
    lines = the_file(folder).read_bytes().splitlines(keepends=True)
    del lines[line]
    the_file(folder).write_bytes(b"".join(lines))
    assert verify(folder)


def test_two_lines_in_another_order_are_found(folder, log):
    fill(log)
    lines = the_file(folder).read_bytes().splitlines(keepends=True)
    lines[1], lines[2] = lines[2], lines[1]
    the_file(folder).write_bytes(b"".join(lines))
    assert verify(folder)[0].line == 2


@pytest.mark.parametrize("kept", range(5))
def test_a_cut_end_is_found_through_the_head(folder, log, kept):
    fill(log)
    lines = the_file(folder).read_bytes().splitlines(keepends=True)
    the_file(folder).write_bytes(b"".join(lines[:kept]))
    (problem,) = verify(folder)
    assert "ends with record" in problem.what


def test_a_number_that_is_skipped_is_found_even_when_every_hash_fits(folder, log):
    fill(log, 2)
    first, second = the_file(folder).read_bytes().splitlines()
    forged = second.replace(b'"n":2', b'"n":4')
    the_file(folder).write_bytes(first + b"\n" + forged + b"\n")
    size = the_file(folder).stat().st_size
    head = {"count": 4, "head": line_digest(forged), "file": the_file(folder).name, "size": size}
    (folder / HEAD).write_text(json.dumps(head))
    (problem,) = verify(folder)
    assert (problem.line, "record 4, expected 2" in problem.what) == (2, True)


def test_the_whole_log_deleted_is_found_through_the_head(folder, log):
    fill(log)
    the_file(folder).unlink()
    assert verify(folder)


def test_a_head_deleted_or_spoiled_is_found(folder, log):
    fill(log)
    (folder / HEAD).write_bytes(b"nonsense")
    assert verify(folder)
    (folder / HEAD).unlink()
    assert verify(folder)


@pytest.mark.parametrize("spoil", ["cut", "half", "extra", "head", "gone"])
def test_writing_goes_on_after_damage_and_the_damage_stays_visible(folder, log, spoil):
    fill(log)
    file = the_file(folder)
    raw = file.read_bytes()
    if spoil == "cut":
        file.write_bytes(b"".join(raw.splitlines(keepends=True)[:3]))
    elif spoil == "half":
        file.write_bytes(raw[:-20])
    elif spoil == "extra":
        file.write_bytes(raw + b'{"n":6,"prev":"forged"}\n')
    elif spoil == "head":
        (folder / HEAD).write_bytes(b"")
    else:
        file.unlink()
    fill(log, 3, start=5)
    records = list(read(folder))
    assert [record.fields["id"] for record in records if record.kind == "decision"][-3:] == [
        "d5",
        "d6",
        "d7",
    ]
    assert any(record.kind == "gap" for record in records)
    if spoil != "head":
        assert verify(folder)


def test_half_a_record_of_a_writer_that_died_is_dropped_and_said(folder, log):
    fill(log, 2)
    with the_file(folder).open("ab") as stream:
        stream.write(b'{"n":3,"prev":"')
    fill(log, 1, start=2)
    assert verify(folder) == []
    assert [record.kind for record in read(folder)] == ["decision", "decision", "gap", "decision"]


def test_a_whole_record_of_a_writer_that_died_is_kept(folder, log):
    fill(log, 2)
    head = (folder / HEAD).read_bytes()
    fill(log, 1, start=2)
    (folder / HEAD).write_bytes(head)  # as if it had died before it moved the head
    fill(log, 1, start=3)
    assert verify(folder) == []
    assert [record.fields["id"] for record in read(folder)] == ["d0", "d1", "d2", "d3"]


@pytest.mark.parametrize("months", [0, 1])
@pytest.mark.parametrize("earlier", [0, 1, 3])
def test_a_writer_killed_before_it_moved_the_head_is_no_alarm(folder, log, clock, earlier, months):
    fill(log, earlier)
    head = (folder / HEAD).read_bytes() if earlier else Head().encode()
    clock.now += months * MONTH  # the record may be the first of a file
    fill(log, 1, start=earlier)
    (folder / HEAD).write_bytes(head)
    proof = prove(folder)
    assert proof.problems == ()
    assert verify(folder) == []
    assert proof.unfinished is not None
    assert "writer died" in proof.unfinished.what
    fill(log, 1, start=earlier + 1)
    assert prove(folder).unfinished is None
    assert verify(folder) == []
    assert [record.fields["id"] for record in read(folder)] == [
        f"d{number}" for number in range(earlier + 2)
    ]


@pytest.mark.parametrize("months", [0, 1])
@pytest.mark.parametrize("earlier", [0, 2])
def test_half_a_record_behind_the_head_is_no_alarm(folder, log, clock, earlier, months):
    fill(log, earlier)
    head = (folder / HEAD).read_bytes() if earlier else Head().encode()
    clock.now += months * MONTH
    fill(log, 1, start=earlier)
    (folder / HEAD).write_bytes(head)
    file = sorted(folder.glob("*.jsonl"))[-1]
    whole = file.read_bytes()
    file.write_bytes(whole[: -len(whole.splitlines()[-1]) // 2])
    proof = prove(folder)
    assert proof.problems == ()
    assert proof.unfinished is not None
    fill(log, 1, start=earlier + 1)
    assert verify(folder) == []
    assert [record.kind for record in read(folder)] == ["decision"] * earlier + ["gap", "decision"]


def test_more_than_one_record_behind_the_head_is_an_alarm(folder, log):
    fill(log, 2)
    head = (folder / HEAD).read_bytes()
    fill(log, 2, start=2)
    (folder / HEAD).write_bytes(head)
    assert verify(folder)
    assert prove(folder).unfinished is None
    fill(log, 1, start=4)
    gap = list(read(folder))[-2]
    assert gap.kind == "gap"
    assert "2 records" in gap.fields["reason"]


@pytest.mark.parametrize("forged", [b'{"n":3,"prev":"no"}\n', b"nonsense\n"])
def test_a_line_behind_the_head_that_does_not_fit_is_an_alarm(folder, log, forged):
    fill(log, 2)
    with the_file(folder).open("ab") as stream:
        stream.write(forged)
    assert verify(folder)
    assert prove(folder).unfinished is None


def test_a_head_emptied_beside_records_is_an_alarm(folder, log):
    fill(log, 1)
    (folder / HEAD).write_bytes(b"")
    assert verify(folder)


def test_a_writer_killed_before_its_first_record_is_no_alarm(folder, log):
    folder.mkdir()
    (folder / HEAD).write_bytes(b"")
    assert verify(folder) == []
    fill(log, 1)
    assert verify(folder) == []


def _append_until_killed(folder, ready):
    log = DecisionLog(folder)
    for number in range(1_000_000):
        log.append("decision", {"id": f"d{number}", "arguments": {"text": "x" * 9000}})
        if number == 3:
            ready.set()


def test_a_kage_killed_while_it_writes_leaves_a_sound_log(folder):
    context = multiprocessing.get_context("spawn")
    for _ in range(4):
        ready = context.Event()
        writer = context.Process(target=_append_until_killed, args=(folder, ready))
        writer.start()
        assert ready.wait(50)
        writer.kill()
        writer.join(50)
        assert verify(folder) == []
    assert DecisionLog(folder).append("decision", {"id": "last"})
    assert verify(folder) == []


def _write_many(folder, name, count):
    """Write as a kage does: many calls at once from a loop, and some from threads of their own."""

    async def main() -> None:
        log = DecisionLog(folder)
        for start in range(0, count, 10):
            writes = [
                log.write("decision", {"id": f"{name}-{number}"}, sync=number % 5 == 0)
                for number in range(start, start + 10)
            ]
            assert all(await asyncio.gather(*writes))
            other = asyncio.to_thread(
                DecisionLog(folder).append, "trust", {"id": f"{name}t{start}"}
            )
            assert await other
        log.close()

    asyncio.run(main())


def test_five_kages_at_once_keep_it_whole(folder):
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=_write_many, args=(folder, f"k{number}", 60)) for number in range(5)
    ]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert verify(folder) == []  # whoever looks meanwhile sees a whole log
        for writer in writers:
            writer.join(0.05)
    assert [writer.exitcode for writer in writers] == [0] * 5
    assert verify(folder) == []
    ids = [record.fields["id"] for record in read(folder) if record.kind == "decision"]
    assert len(ids) == len(set(ids)) == 300
    assert not any(record.kind == "gap" for record in read(folder))
    for number in range(5):
        mine = [name for name in ids if name.startswith(f"k{number}-")]
        assert mine == [f"k{number}-{step}" for step in range(60)]


def test_records_that_wait_together_cost_one_wait_for_the_disk(folder, monkeypatch):
    flushed: list[int] = []
    waiting = threading.Event()

    def flush(stream):
        flushed.append(stream)
        waiting.wait(50)

    monkeypatch.setattr(appender, "_flush", flush)

    async def main() -> None:
        log = DecisionLog(folder)
        first = asyncio.create_task(log.write("decision", {"id": "first"}, sync=True))
        await until(lambda: flushed)  # the disk is busy; whatever comes now waits together
        rest = [
            asyncio.create_task(log.write("decision", {"id": f"d{number}"}, sync=True))
            for number in range(40)
        ]
        await asyncio.sleep(0)
        waiting.set()
        assert all(await asyncio.gather(first, *rest))
        log.close()

    asyncio.run(main())
    assert len(flushed) == 2
    assert verify(folder) == []
    assert [record.fields["id"] for record in read(folder)][1:] == [f"d{n}" for n in range(40)]


def test_a_disk_that_loses_what_it_took_is_no_yes(folder, log, monkeypatch):
    fill(log, 1)

    def broken(stream):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(appender, "_flush", broken)
    assert not log.append("decision", {"id": "d1"}, sync=True)
    assert log.append("decision", {"id": "d2"})
    assert verify(folder) == []
    assert [record.kind for record in read(folder)] == ["decision"] * 3  # it stands all the same


def _fill_the_disk(folder, said):
    """Let no file grow past 8 KiB, as on a full disk, then let them grow again."""
    log = DecisionLog(folder, on_trouble=said.put)
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, most[1]))

    async def main() -> None:
        text = {"text": "x" * 700}
        writes = [
            log.write("decision", {"id": f"d{number}", "arguments": text}, sync=True)
            for number in range(50)
        ]
        written = await asyncio.gather(*writes)  # every call goes on
        assert written[0] and not written[-1]
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
        assert await log.write("decision", {"id": "after"}, sync=True)
        log.close()
        said.put(sum(written))

    asyncio.run(main())


def test_a_full_disk_stops_no_call_and_leaves_a_gap_with_the_right_number(folder):
    context = multiprocessing.get_context("spawn")
    said = context.Queue()
    writer = context.Process(target=_fill_the_disk, args=(folder, said))
    writer.start()
    assert "File too large" in said.get(timeout=50)  # once: the next is the count
    written = said.get(timeout=50)
    writer.join(50)
    assert writer.exitcode == 0
    assert verify(folder) == []
    *before, gap, after = read(folder)
    assert (gap.kind, after.fields["id"]) == ("gap", "after")
    kept = [record.fields["id"] for record in before if record.kind == "decision"]
    assert len(kept) == written
    # a gap that still fitted where its record did not is followed by another
    gaps = [record.fields["missed"] for record in (*before, gap) if record.kind == "gap"]
    assert sum(gaps) == 50 - written


def test_threads_of_one_kage_keep_it_whole(folder, log):
    threads = [threading.Thread(target=fill, args=(log, 20, 20 * number)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verify(folder) == []
    assert log.head().count == 80


def test_a_disk_that_refuses_is_said_once_a_minute_and_a_gap_follows(folder, clock, monkeypatch):
    said: list[str] = []
    log = DecisionLog(folder, clock=clock, on_trouble=said.append)
    fill(log, 1)
    real = os.write

    def full(stream, data):
        real(stream, bytes(data)[:10])  # a full disk takes the beginning
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    for _ in range(3):
        assert not log.append("decision", {"id": "lost"})
    assert len(said) == 1
    assert "No space left" in said[0]
    monkeypatch.setattr(log_module, "WARN_EVERY", 0.0)
    assert not log.append("decision", {"id": "lost"})
    assert len(said) == 2
    monkeypatch.setattr(os, "write", real)
    fill(log, 1, start=1)
    assert verify(folder) == []
    gap = list(read(folder))[1]
    assert gap.kind == "gap"
    assert gap.fields["missed"] == 4


def test_what_is_missing_is_noted_when_the_kage_ends(tmp_path, clock):
    folder = tmp_path / "decisions"
    folder.write_text("")
    log = DecisionLog(folder, clock=clock)
    assert not log.append("decision", {"id": "lost"})
    log.close()  # still no place for it
    folder.unlink()
    log.close()
    log.close()
    (gap,) = read(folder)
    assert (gap.kind, gap.fields["missed"]) == ("gap", 1)
    assert verify(folder) == []


def test_a_folder_that_cannot_be_made_stops_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    said: list[str] = []
    log = DecisionLog(tmp_path / "file" / "decisions", on_trouble=said.append)
    assert not log.append("decision", {"id": "d"})
    assert len(said) == 1


def test_secrets_are_replaced_in_every_field_and_depth(folder):
    redact = Redactor()
    redact.add("TOKEN", "hunter2hunter2")
    log = DecisionLog(folder, redact=redact)
    log.append(
        "decision",
        {
            "id": "d",
            "reason": "because hunter2hunter2",
            "arguments": {"a": [{"hunter2hunter2": "x hunter2hunter2 y"}]},
        },
    )
    assert b"hunter2" not in the_file(folder).read_bytes()
    (record,) = read(folder)
    assert record.fields["arguments"] == {"a": [{"[redacted:TOKEN]": "x [redacted:TOKEN] y"}]}


def test_long_arguments_are_cut_and_odd_ones_do_not_break_a_line(folder, log):
    log.append("decision", {"id": "d0", "arguments": {"a": "x" * 1_000_000}})
    log.append("decision", {"id": "d1", "arguments": {"a": float("nan"), "b": "\ud800\n\u2028"}})
    log.append("decision", {"id": "d2", "arguments": {"a": "\ud800\n\u2028\x00"}})
    log.append("decision", {"id": "d3", "reason": "\ud800" + "y" * 100_000})
    assert verify(folder) == []
    assert the_file(folder).stat().st_size < 60_000
    first = next(iter(read(folder)))
    assert first.fields["arguments"]["characters"] > 1_000_000


def test_a_record_is_one_line_of_json_with_a_time(folder, log):
    fill(log, 1)
    (line,) = the_file(folder).read_text().splitlines()
    data = json.loads(line)
    assert data["time"] == "2026-02-02T02:40:00.000Z"
    assert data["v"] == 1


def test_files_are_for_their_owner_only(folder, log):
    fill(log, 1)
    assert folder.stat().st_mode & 0o077 == 0
    for file in folder.iterdir():
        assert file.stat().st_mode & 0o077 == 0


def test_a_decision_is_found_by_its_id(folder, log, clock):
    fill(log, 2)
    clock.now += MONTH
    fill(log, 2, start=2)
    found = log.find({"d1": "2026-02", "d3": "2026-03", "nosuch": "2026-02"})
    assert set(found) == {"d1", "d3"}


def test_writing_from_the_loop_is_whole_even_when_cancelled(folder, log):
    async def main() -> None:
        async def write(number: int) -> None:
            await log.write("decision", {"id": f"d{number}"}, sync=True)

        tasks = [asyncio.create_task(write(number)) for number in range(20)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        log.close()

    asyncio.run(main())
    assert verify(folder) == []
    assert log.head().count == 20
