"""Look at a path, and put back what stood there: by descriptor, never through a link."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path

from kage.core.errors import ToolError
from kage.core.undo import ABSENT, Change, Kind, State
from kage.tools import confine

MAX_READ = 64 << 20  # bytes of a file that are read to know it again
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KEPT_MODE = 0o777  # set-uid and set-gid are not given back: an ordinary write clears them too


def mark_of(data: bytes) -> str:
    """Give the mark of a file with these bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def by_status(status: os.stat_result) -> State:
    """Describe what a status is of, without reading it."""
    mark = f"stat:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"
    if stat.S_ISREG(status.st_mode):
        return State(kind=Kind.FILE, mode=stat.S_IMODE(status.st_mode), mark=mark)
    kind = Kind.LINK if stat.S_ISLNK(status.st_mode) else Kind.OTHER
    return State(kind=kind, mark=mark)


def look(path: str | Path, *, like: State | None = None, most: int = MAX_READ) -> State:
    """Say what stands at ``path``; see ``look_at``."""
    return look_at(path, like=like, most=most)[0]


def look_at(
    path: str | Path, *, like: State | None = None, most: int = MAX_READ
) -> tuple[State, bytes | None]:
    """Say what stands at ``path``, and give its bytes (of a link: what it points at).

    Larger files than ``most`` are known by inode, size and time. So are those that are compared
    with a state (``like``) that was known so.

    Raises:
        OSError: the way there cannot be walked, or it cannot be read.
    """
    parts = Path(path).parts[1:]
    try:
        with confine.folder(parts[:-1]) as parent:
            return _seen(parent, parts[-1], like=like, most=most)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT, None


def _seen(parent: int, name: str, *, like: State | None, most: int) -> tuple[State, bytes | None]:
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        return ABSENT, None  # no file stands there; what is in the folder has paths of its own
    state = by_status(status)
    if state.kind is Kind.LINK:
        target = os.fsencode(os.readlink(name, dir_fd=parent))
        return State(kind=Kind.LINK, mark=mark_of(target)), target
    if state.kind is not Kind.FILE or (like is not None and like.mark.startswith("stat:")):
        return state, None
    descriptor, status = confine.open_at(parent, name)
    try:
        if status.st_size > most:
            return by_status(status), None
        data = bytearray()
        while len(data) <= most and (chunk := os.pread(descriptor, 1 << 20, len(data))):
            data += chunk
    finally:
        os.close(descriptor)
    if len(data) > most:
        return by_status(status), None
    mode = stat.S_IMODE(status.st_mode)
    return State(kind=Kind.FILE, mode=mode, mark=mark_of(bytes(data))), bytes(data)


def same(one: State, other: State) -> bool:
    """Say whether two states are of the same bytes, kind and mode."""
    return (one.kind, one.mode & _KEPT_MODE, one.mark) == (
        other.kind,
        other.mode & _KEPT_MODE,
        other.mark,
    )


def put_back(change: Change, data: bytes | None) -> None:
    """Make what stood at a path before the change stand there again.

    Args:
        change: What happened; nothing is done unless what it left still stands there.
        data: The former bytes; None where there was nothing.

    Raises:
        ToolError: the path changed since, or cannot be written; it stands as it stood.
    """
    parts = Path(change.path).parts[1:]
    make = change.before.kind is not Kind.ABSENT
    try:
        with confine.folder(parts[:-1], make=make) as parent:
            _put_back(parent, parts[-1], change, data)
    except (OSError, ValueError) as error:
        raise confine.failure(error, change.shown, "restored") from error
    if change.before.kind is Kind.ABSENT:
        _tidy(change.made)


def _put_back(parent: int, name: str, change: Change, data: bytes | None) -> None:
    if change.before.kind is Kind.ABSENT:
        _guard(parent, name, change)
        os.unlink(name, dir_fd=parent)
        return
    if data is None:
        raise ToolError(f"{change.shown} cannot be restored", why="its bytes were not kept")
    if change.verb == "mode":
        _set_mode(parent, name, change)
        return
    draft = f".{os.fsdecode(os.fsencode(name)[:100])}.{secrets.token_hex(6)}.kage"
    try:
        if change.before.kind is Kind.LINK:
            os.symlink(data, os.fsencode(draft), dir_fd=parent)
        else:
            _write(parent, draft, data, change.before.mode)
        if change.after.kind is Kind.ABSENT:  # an empty folder may have come into its place
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=parent)
        _guard(parent, name, change)
        os.rename(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:  # whatever it is goes on; only the draft must not stay
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=parent)
        raise


def _write(parent: int, draft: str, data: bytes, mode: int) -> None:
    descriptor = os.open(draft, _CREATE, 0o600, dir_fd=parent)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fchmod(descriptor, mode & _KEPT_MODE)
    finally:
        os.close(descriptor)


def _set_mode(parent: int, name: str, change: Change) -> None:
    _guard(parent, name, change)
    descriptor, _ = confine.open_at(parent, name)
    try:
        os.fchmod(descriptor, change.before.mode & _KEPT_MODE)
    finally:
        os.close(descriptor)


def _guard(parent: int, name: str, change: Change) -> None:
    """Look once more, right before the step that cannot be taken back.

    Raises:
        ToolError: something else stands there now.
    """
    try:
        now = _seen(parent, name, like=change.after, most=MAX_READ)[0]
    except FileNotFoundError:
        now = ABSENT
    if not same(now, change.after):
        raise ToolError(f"{change.shown} changed since", fix="Nothing was done to it")


def _tidy(made: Sequence[str]) -> None:
    """Remove the folders that were made for a file, as far as nothing else is in them."""
    for folder in reversed(made):
        parts = Path(folder).parts[1:]
        try:
            with confine.folder(parts[:-1]) as parent:
                os.rmdir(parts[-1], dir_fd=parent)
        except OSError as error:
            if error.errno != errno.ENOENT:
                return
