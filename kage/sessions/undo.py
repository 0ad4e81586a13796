"""Former bytes of files and which call replaced them, in a session's folder; capped in size."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kage.core.errors import SessionError
from kage.core.files import content, replace
from kage.core.undo import Change, Kind, State, UndoItem, UndoRecord

FOLDER = "undo"  # in the session's own
RECORDS = "records.jsonl"
SNAPSHOT = "snapshot.git"  # what looking at the workspace needs; gone when the session is closed
_BLOB = re.compile(r"[0-9a-f]{64}")
_MAX_RECORDS = 64 << 20  # bytes of records that are read
NO_BYTES = "its former bytes were not kept"


class NotKept(Exception):
    """Something could not be kept; the text says why."""


class UndoStore:
    """The folder ``<session>/undo``; may be used from several threads.

    Bytes are stored as they were, secrets included: a file that is restored has to be exact.

    Args:
        folder: Made when the first bytes are kept.
        most: Bytes all kept files together may have; the oldest calls are forgotten first.
    """

    def __init__(self, folder: Path, *, most: int) -> None:
        self.folder = folder
        self._most = most
        self._lock = threading.RLock()
        self._records: dict[str, UndoRecord] = {}
        self._undone: set[str] = set()
        self._dropped: set[str] = set()
        self._sizes: dict[str, int] = {}  # of the blobs on disk
        self._fresh: set[str] = set()  # kept, and in no record yet
        self._held: set[str] = set()  # ids of records that are not dropped now
        self._read = False
        self._swept = False

    def keep(self, data: bytes) -> str:
        """Keep bytes and give their name.

        Raises:
            NotKept: they are more than may be kept, or the disk refuses.
        """
        name = hashlib.sha256(data).hexdigest()
        with self._lock:
            self._load()
            if not self._swept:  # who only reads may not be alone with the folder
                self._swept = True
                self._sweep()
            if name not in self._sizes:
                if len(data) > self._most:
                    limit = f"{self._most:,} bytes of former files are kept"
                    raise NotKept(f"it has {len(data):,} bytes, and at most {limit}")
                self._make_room(len(data))
                try:
                    self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                    replace(self.folder / name, data)
                except OSError as error:
                    raise NotKept(error.strerror or str(error)) from error
                self._sizes[name] = len(data)
            self._fresh.add(name)
        return name

    def bytes_of(self, state: State) -> bytes:
        """Give the kept bytes of a state.

        Raises:
            SessionError: they were not kept, or are damaged.
        """
        if not _BLOB.fullmatch(state.blob):
            raise SessionError("The former bytes were not kept")
        try:
            data = content(self.folder / state.blob)
        except OSError as error:
            why = error.strerror or str(error)
            raise SessionError("The former bytes cannot be read", why=why) from error
        if hashlib.sha256(data).hexdigest() != state.blob:
            raise SessionError("The former bytes are damaged", why="their digest is another")
        return data

    @contextlib.contextmanager
    def holding(self, record: UndoRecord) -> Iterator[None]:
        """Let no other bytes take the room of this record's within the block."""
        with self._lock:
            self._held.add(record.id)
        try:
            yield
        finally:
            with self._lock:
                self._held.discard(record.id)

    def add(self, record: UndoRecord) -> None:
        """Write a record down; it takes back the one it ``undoes``.

        Raises:
            NotKept: the disk refuses.
        """
        with self._lock:
            self._load()
            self._append({"type": "call", **_encode(record)})
            self._take(record)
            self._fresh.difference_update(_blobs(record))

    def items(self) -> tuple[UndoItem, ...]:
        """Give all records, newest first, each with the reason why it cannot be undone."""
        with self._lock:
            self._load()
            return tuple(
                UndoItem(record=record, why=self._why(record))
                for record in reversed(self._records.values())
            )

    def find(self, name: str) -> UndoItem:
        """Give the record of this id, or the newest of this call.

        Raises:
            SessionError: there is none.
        """
        for item in self.items():
            if name in (item.record.id, item.record.call_id):
                return item
        raise SessionError("This call changed no file that kage knows of")

    def origin(self, record: UndoRecord) -> UndoRecord:
        """Give the call's own record that a chain of undoings began with."""
        with self._lock:
            self._load()
            passed = {record.id}
            while (before := self._records.get(record.undoes)) and before.id not in passed:
                passed.add(before.id)
                record = before
            return record

    def _why(self, record: UndoRecord) -> str:
        if record.id in self._undone:
            return "it is undone"
        if record.id in self._dropped:
            return "its former bytes made room for newer ones"
        return "" if any(change.undoable for change in record.changes) else NO_BYTES

    def _make_room(self, size: int) -> None:
        """Forget the oldest calls until ``size`` more bytes fit."""
        used = sum(self._sizes.values())
        for record in list(self._records.values()):
            if used + size <= self._most:
                return
            if record.id in self._dropped or record.id in self._held:
                continue
            self._append({"type": "dropped", "id": record.id})
            self._dropped.add(record.id)
            used -= self._sweep()

    def _sweep(self) -> int:
        """Remove the blobs nothing needs; gives their bytes."""
        needed = set(self._fresh)
        for record in self._records.values():
            if record.id not in self._dropped:
                needed.update(_blobs(record))
        freed = 0
        for name in set(self._sizes) - needed:
            with contextlib.suppress(OSError):
                (self.folder / name).unlink()
            freed += self._sizes.pop(name)
        return freed

    def _append(self, line: dict[str, Any]) -> None:
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            handle = os.open(self.folder / RECORDS, flags, 0o600)
            try:
                size = os.fstat(handle).st_size
                if size and os.pread(handle, 1, size - 1) != b"\n":
                    data = b"\n" + data  # a kage died while it wrote
                try:
                    view = memoryview(data)
                    while view:
                        view = view[os.write(handle, view) :]
                except OSError:
                    os.ftruncate(handle, size)
                    raise
            finally:
                os.close(handle)
        except OSError as error:
            raise NotKept(error.strerror or str(error)) from error

    def _load(self) -> None:
        if self._read:
            return
        self._read = True
        for line in _lines(self.folder / RECORDS):
            match line:
                case {"type": "dropped", "id": str(name)}:
                    self._dropped.add(name)
                case {"type": "call"}:
                    with contextlib.suppress(KeyError, TypeError, ValueError):
                        self._take(_decode(line))
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                if _BLOB.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    self._sizes[entry.name] = entry.stat(follow_symlinks=False).st_size

    def _take(self, record: UndoRecord) -> None:
        self._records[record.id] = record
        if record.undoes:
            self._undone.add(record.undoes)


def _lines(path: Path) -> Iterator[Any]:  # JSON values
    """Give what each sound line holds; the others are passed over."""
    try:
        data = content(path)
    except OSError:
        return
    for line in data[-_MAX_RECORDS:].split(b"\n"):
        with contextlib.suppress(ValueError, RecursionError):
            yield json.loads(line)


def _blobs(record: UndoRecord) -> set[str]:
    return {change.before.blob for change in record.changes if change.before.blob}


def _encode(record: UndoRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "call": record.call_id,
        "title": record.title,
        "at": round(record.at, 3),
        "beside": record.beside,
        "undoes": record.undoes,
        "changes": [
            {
                "path": change.path,
                "shown": change.shown,
                "before": _state(change.before),
                "after": _state(change.after),
                "made": list(change.made),
            }
            for change in record.changes
        ],
    }


def _state(state: State) -> dict[str, Any]:
    return {"kind": state.kind.value, "mode": state.mode, "mark": state.mark, "blob": state.blob}


def _decode(line: dict[str, Any]) -> UndoRecord:
    """Read a record back; KeyError, TypeError or ValueError when it is none."""
    return UndoRecord(
        id=_text(line["id"]),
        call_id=_text(line["call"]),
        title=_text(line["title"]),
        at=float(line["at"]),
        beside=int(line["beside"]),
        undoes=_text(line["undoes"]),
        changes=tuple(_read_change(item) for item in line["changes"]),
    )


def _read_change(data: dict[str, Any]) -> Change:
    path = _text(data["path"])
    if not os.path.isabs(path) or os.path.normpath(path) != path:
        raise ValueError("a path is not absolute and plain")
    return Change(
        path=path,
        shown=_text(data["shown"]),
        before=_read_state(data["before"]),
        after=_read_state(data["after"]),
        made=tuple(map(_text, data["made"])),
    )


def _read_state(data: dict[str, Any]) -> State:
    return State(
        kind=Kind(data["kind"]),
        mode=int(data["mode"]) & 0o7777,
        mark=_text(data["mark"]),
        blob=_text(data["blob"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value
