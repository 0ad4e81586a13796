"""Write a file whole or not at all, inside the roots: a new file beside it, then a rename."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kage.core.errors import ToolError
from kage.tools import confine
from kage.tools.confine import Place

if TYPE_CHECKING:
    from kage.core.undo import Keeper

MAX_FORMER = 32 << 20  # bytes of a replaced file that are kept

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def put(
    place: Place,
    data: bytes,
    *,
    expected: os.stat_result | None = None,
    keeper: Keeper | None = None,
) -> bool:
    """Make ``data`` the whole content of the file at ``place``; say whether it is new.

    Missing folders are made. An existing file keeps its permission bits; a hard link to it
    elsewhere keeps the old content. ``expected`` is the status the new content was made from.
    ``keeper`` is told what was there before anything is replaced.

    Raises:
        ToolError: it is special, read-only, changed since ``expected``, or cannot be written.
    """
    if not place.parts:
        raise confine.special(place.shown, "a folder")
    if place.parts[0] == "dev" and place.parts[1:2] != ("shm",):
        raise confine.special(place.shown, "in the folder of devices")
    try:
        made = _missing(place) if keeper is not None and expected is None else ()
        with confine.folder(place.parts[:-1], make=expected is None) as parent:
            return _replace(parent, place, data, expected, _Keeping(keeper, place, made))
    except (OSError, ValueError) as error:
        raise confine.failure(error, place.shown, "written") from error


@dataclass(frozen=True, slots=True)
class _Keeping:
    """What is to be told about one replacement."""

    keeper: Keeper | None
    place: Place
    made: tuple[str, ...]

    def before(self, parent: int, now: os.stat_result | None) -> os.stat_result | None:
        """Keep what stands there; gives the status of what was kept."""
        if self.keeper is None:
            return now
        if now is None:
            self.keeper.replacing(self.place.path, None, None, self.made)
            return None
        status, data = _former(parent, self.place.parts[-1], now)
        self.keeper.replacing(self.place.path, status, data, self.made)
        return status

    def after(self, mode: int, data: bytes) -> None:
        """Tell what stands there now."""
        if self.keeper is not None:
            self.keeper.replaced(self.place.path, mode, data)


def _missing(place: Place) -> tuple[str, ...]:
    """Give the folders above ``place`` that are not there, the upper ones first."""
    missing: list[str] = []
    for folder in place.path.parents:
        if os.path.lexists(folder):
            break
        missing.insert(0, str(folder))
    return tuple(missing)


def _former(parent: int, name: str, now: os.stat_result) -> tuple[os.stat_result, bytes | None]:
    """Read the file that is about to be replaced; None when it is too large or not readable."""
    try:
        descriptor, status = confine.open_at(parent, name)
    except PermissionError:
        return now, None
    try:
        if status.st_size > MAX_FORMER:
            return status, None
        data = bytearray()
        while len(data) <= MAX_FORMER and (chunk := os.pread(descriptor, 1 << 20, len(data))):
            data += chunk
        return status, bytes(data) if len(data) <= MAX_FORMER else None
    finally:
        os.close(descriptor)


def _replace(
    parent: int,
    place: Place,
    data: bytes,
    expected: os.stat_result | None,
    keeping: _Keeping,
) -> bool:
    name = place.parts[-1]
    before = keeping.before(parent, _present(parent, place))
    draft = f".{os.fsdecode(os.fsencode(name)[:100])}.{secrets.token_hex(6)}.kage"
    descriptor = os.open(draft, _CREATE, 0o666, dir_fd=parent)
    try:
        try:
            _fill(descriptor, data)
            if before is not None:
                _keep_owner_and_mode(descriptor, before)
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        finally:
            os.close(descriptor)
        now = _present(parent, place)
        if expected is not None and not _same(expected, now):
            raise ToolError(
                f"{place.shown} changed while it was being edited", fix="Read it again and retry"
            )
        if expected is None and keeping.keeper is not None and not _still(before, now):
            before = keeping.before(parent, now)
        os.rename(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=parent)
        raise
    keeping.after(mode, data)
    return before is None


def _still(before: os.stat_result | None, now: os.stat_result | None) -> bool:
    return now is None if before is None else _same(before, now)


def _present(parent: int, place: Place) -> os.stat_result | None:
    """Look at the file to be replaced; refuse everything a program could not write to."""
    name = place.parts[-1]
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    kind = confine.describe(status)
    if kind == "a link":  # the path was resolved, so it was put there since
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if kind:
        raise confine.special(place.shown, kind)
    if not os.access(name, os.W_OK, dir_fd=parent):
        raise ToolError(f"{place.shown} cannot be written", why="it is read-only")
    return status


def _fill(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _keep_owner_and_mode(descriptor: int, before: os.stat_result) -> None:
    ours = os.fstat(descriptor)
    if (ours.st_uid, ours.st_gid) != (before.st_uid, before.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    # set-uid and set-gid are not kept: an ordinary write clears them too
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & 0o777)


def _same(expected: os.stat_result, now: os.stat_result | None) -> bool:
    return now is not None and (expected.st_ino, expected.st_size, expected.st_mtime_ns) == (
        now.st_ino,
        now.st_size,
        now.st_mtime_ns,
    )
