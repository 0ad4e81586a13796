"""Former bytes of a session: exact, found again, capped, and never half-written."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.core.errors import SessionError
from kage.core.ids import new_id
from kage.core.messages import Outcome, ToolMessage, UserMessage
from kage.core.undo import ABSENT, Change, Effect, Kind, State, Touched, UndoRecord
from kage.sessions import undo as module
from kage.sessions.format import decode, encode
from kage.sessions.store import SessionStore
from kage.sessions.undo import FOLDER, SNAPSHOT, NotKept, UndoStore, _decode, _encode


def record(blob: str, name: str = "a", undoes: str = "") -> UndoRecord:
    change = Change(
        path=f"/w/{name}\udcff",
        shown=name,
        before=State(kind=Kind.FILE, mode=0o640, mark=f"sha256:{blob}", blob=blob),
        after=ABSENT,
        made=("/w",),
    )
    return UndoRecord(
        id=new_id("u"), call_id=new_id("c"), title=name, at=1.5, changes=(change,), undoes=undoes
    )


def test_bytes_and_records_are_there_for_the_next_kage(tmp_path: Path) -> None:
    store = UndoStore(tmp_path / "undo", most=1 << 20)
    data = bytes(range(256))
    one = record(store.keep(data))
    store.add(one)
    store.add(record(store.keep(b""), "empty"))
    back = record(store.keep(b"now"), "back", undoes=one.id)
    store.add(back)
    with (tmp_path / "undo" / module.RECORDS).open("ab") as file:
        file.write(b'{"type":"call","id":7}\n[]\n{"type":"call"')  # a kage died here
    store = UndoStore(tmp_path / "undo", most=1 << 20)
    assert store.find(one.id).record == one
    assert store.bytes_of(one.changes[0].before) == data
    assert [item.why for item in store.items()] == ["", "", "it is undone"]
    assert store.find(back.call_id).record.undoes == one.id
    store.add(record(store.keep(b"more"), "more"))
    assert len(UndoStore(tmp_path / "undo", most=1).items()) == 4
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "undo").iterdir()} == {0o600}
    with pytest.raises(SessionError, match="changed no file"):
        store.find("nothing")


def test_the_oldest_calls_make_room_and_say_so(tmp_path: Path) -> None:
    store = UndoStore(tmp_path, most=100)
    shared = store.keep(b"s" * 30)
    old = [record(store.keep(b"%d" % number + b"x" * 29), str(number)) for number in range(2)]
    for item in (record(shared), *old, record(shared, "later")):
        store.add(item)
    store.add(record(store.keep(b"y" * 40), "new"))
    reasons = {item.record.title: item.why for item in store.items()}
    assert reasons["new"] == reasons["later"] == ""
    assert "made room" in reasons["0"]
    assert store.bytes_of(record(shared).changes[0].before) == b"s" * 30
    again = UndoStore(tmp_path, most=100)
    assert {item.record.title: item.why for item in again.items()} == reasons
    with pytest.raises(NotKept, match="101 bytes"):
        store.keep(b"z" * 101)


def test_damaged_bytes_are_never_given(tmp_path: Path) -> None:
    store = UndoStore(tmp_path, most=100)
    item = record(store.keep(b"right"))
    store.add(item)
    (tmp_path / item.changes[0].before.blob).write_bytes(b"wrong")
    with pytest.raises(SessionError, match="damaged"):
        store.bytes_of(item.changes[0].before)
    (tmp_path / item.changes[0].before.blob).unlink()
    with pytest.raises(SessionError, match="cannot be read"):
        store.bytes_of(item.changes[0].before)
    for blob in ("", "../../etc/passwd"):
        with pytest.raises(SessionError, match="not kept"):
            store.bytes_of(State(kind=Kind.FILE, blob=blob))


def test_a_full_disk_is_said_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = UndoStore(tmp_path, most=100)
    item = record(store.keep(b"before"))
    store.add(item)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "write", full)
        with pytest.raises(NotKept, match="No space left"):
            store.add(record("", "lost"))
        patch.setattr(module, "replace", full)
        with pytest.raises(NotKept, match="No space left"):
            store.keep(b"more")
    assert [found.record for found in UndoStore(tmp_path, most=100).items()] == [item]


states = st.builds(
    State,
    kind=st.sampled_from(Kind),
    mode=st.integers(0, 0o7777),
    mark=st.text(max_size=5),
    blob=st.text(max_size=5),
)


@given(
    name=st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=8),
    before=states,
    after=states,
)
def test_every_record_is_read_as_it_was_written(name: str, before: State, after: State) -> None:
    if name in (".", ".."):
        return
    change = Change(path=f"/{name}", shown=name, before=before, after=after)
    written = UndoRecord(id="u", call_id="c", title=name, at=2.0, changes=(change,), beside=1)
    assert _decode(_encode(written)) == written


@pytest.mark.parametrize("path", ["relative", "/a/../b", "/a//b", "", 7])
def test_a_record_whose_path_is_not_plain_is_none(path: object) -> None:
    line = _encode(record(""))
    line["changes"][0]["path"] = path
    with pytest.raises((ValueError, TypeError)):
        _decode(line)


def test_what_a_call_did_to_files_survives_the_session_file() -> None:
    effect = Effect(
        record="u1",
        files=(Touched(path="a", verb="added", undoable=True),),
        total=1,
        beside=2,
        note="n",
        claim_broken=True,
        own=True,
    )
    message = ToolMessage(call_id="c", name="bash", outcome=Outcome.OK, content=(), effect=effect)
    line = encode(message)
    assert decode(line) == message
    for broken in (None, [], {}, {**line["effect"], "total": "many"}, {"files": 3}):
        read = decode({**line, "effect": broken})
        assert isinstance(read, ToolMessage)
        assert read.effect is None


def test_what_a_killed_kage_left_is_found_and_an_open_session_is_not(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    sessions = [store.create(tmp_path) for _ in range(2)]
    for session in sessions:
        session.append(UserMessage(content=()))
        (session.folder / FOLDER / SNAPSHOT).mkdir(parents=True)
    sessions[0].close()
    left = store.left_behind(f"{FOLDER}/{SNAPSHOT}")
    assert left == (sessions[0].folder / FOLDER / SNAPSHOT,)
    sessions[1].close()


def test_who_only_reads_takes_nothing_from_the_kage_that_writes(tmp_path: Path) -> None:
    store = UndoStore(tmp_path, most=100)
    store.add(record(store.keep(b"first")))
    fresh = record(store.keep(b"about to be replaced"), "fresh")
    reader = UndoStore(tmp_path, most=100)
    assert [item.record.title for item in reader.items()] == ["a"]
    store.add(fresh)
    assert store.bytes_of(fresh.changes[0].before) == b"about to be replaced"
    UndoStore(tmp_path, most=100).keep(b"lost by a kage that died")
    UndoStore(tmp_path, most=100).keep(b"next")
    sizes = sorted(path.stat().st_size for path in tmp_path.iterdir() if len(path.name) == 64)
    assert sizes == [4, 5, 20]
