"""Write one conversation, line by line, before anything is done about what it says."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kage.core.errors import SessionLocked
from kage.core.ids import new_id
from kage.core.messages import Message
from kage.sessions.format import VERSION, Json, encode, to_line
from kage.sessions.reader import SessionFile

WARN_EVERY = 60.0  # seconds between two complaints about a disk that takes nothing
ARTIFACTS = "artifacts"  # the folder of files results carried, in the session's own
MAX_PENDING = 64 << 20  # bytes kept for a disk that may take them later


class Session:
    """One open conversation; the only writer of its file, for as long as it is open.

    When the disk takes nothing the lines wait in memory, the person is told once a minute, and
    each later line tries again; a half-written line is cut off before anything follows it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        session_id: str,
        workspace: Path,
        redact: Callable[[str], str],
        on_trouble: Callable[[str], None],
    ) -> None:
        self.folder = folder
        self.id = session_id
        self.workspace = workspace
        self._redact = redact
        self._on_trouble = on_trouble
        self._lock: int | None = None
        self._file: int | None = None
        self._leaf: str | None = None
        self._pending = bytearray()
        self._lost = 0
        self._size = 0  # bytes of whole lines on disk
        self._warned = float("-inf")

    @property
    def artifacts(self) -> Path:
        """The folder for full outputs and files a result carried; made by who first needs it."""
        return self.folder / ARTIFACTS

    def append(self, message: Message) -> None:
        """Write ``message`` and hand it to the system before returning."""
        self._write(encode(message))

    def note_model(self, model: str) -> None:
        """Record that ``model`` answers from here on."""
        self._write({"type": "model", "id": new_id("n"), "model": model})

    def lock(self) -> None:
        """Take the session for this process.

        Raises:
            SessionLocked: another kage holds it.
        """
        if self._lock is not None:
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            text = os.pread(handle, 32, 0).strip()
            os.close(handle)
            pid = int(text) if text.isdigit() else 0
            who = f"Another kage (process {pid})" if pid else "Another kage"
            raise SessionLocked(
                f"{who} has session {self.id} open",
                pid=pid,
                fix="Close it there, or start a new session.",
            ) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        self._lock = handle

    def go_on(self, held: SessionFile) -> None:
        """Continue after what was read from disk; a cut last line is closed off first."""
        self._leaf = held.leaf or None
        self.workspace = Path(held.workspace)
        self._open()
        if self._file is not None and self._size:
            last = os.pread(self._file, 1, self._size - 1)
            if last != b"\n":
                self._put(b"\n")

    def close(self) -> None:
        """Write what waits, if the disk takes it now, and let go of the session."""
        if self._pending:
            self._flush()
        for handle in (self._file, self._lock):
            if handle is not None:
                os.close(handle)
        self._file = self._lock = None

    def _write(self, line: Json) -> None:
        data = {
            "type": line["type"],
            "id": line["id"],
            "parent": self._leaf,
            "at": round(time.time(), 3),
            **_scrub(line, self._redact),
        }
        self._leaf = line["id"]
        encoded = to_line(data)
        if len(self._pending) + len(encoded) > MAX_PENDING:
            self._lost += 1
        else:
            self._pending += encoded
        self._flush()

    def _flush(self) -> None:
        try:
            if self._file is None:
                self.lock()
                self._open()
            self._put(bytes(self._pending))
        except (OSError, SessionLocked) as error:
            self._complain(error)
        else:
            self._pending.clear()

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self.folder / "session.jsonl", flags, 0o600)
        self._size = os.fstat(self._file).st_size
        if not self._size:
            header = {
                "type": "session",
                "version": VERSION,
                "id": self.id,
                "workspace": str(self.workspace),
                "created": round(time.time(), 3),
            }
            try:
                self._put(to_line(header))
            except OSError:
                os.close(self._file)
                self._file = None
                raise

    def _put(self, data: bytes) -> None:
        """Write all of ``data`` or nothing of it.

        Raises:
            OSError: the disk took nothing; what it took in part is cut off again.
        """
        assert self._file is not None
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)

    def _complain(self, error: Exception) -> None:
        now = time.monotonic()
        if now - self._warned < WARN_EVERY:
            return
        self._warned = now
        reason = error.strerror if isinstance(error, OSError) else str(error)
        lost = f"; {self._lost} messages no longer fit into memory" if self._lost else ""
        self._on_trouble(f"The session cannot be saved ({reason}); it goes on in memory{lost}")


def _scrub(value: Any, redact: Callable[[str], str]) -> Any:  # JSON values have no common type
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _scrub(item, redact) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_scrub(item, redact) for item in value]
    return value
