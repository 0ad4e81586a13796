"""Write a file whole or not at all, inside the roots: a new file beside it, then a rename."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat

from kage.core.errors import ToolError
from kage.tools import confine
from kage.tools.confine import Place

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def put(place: Place, data: bytes, *, expected: os.stat_result | None = None) -> bool:
    """Make ``data`` the whole content of the file at ``place``; say whether it is new.

    Missing folders are made. An existing file keeps its permission bits; a hard link to it
    elsewhere keeps the old content. ``expected`` is the status the new content was made from.

    Raises:
        ToolError: it is special, read-only, changed since ``expected``, or cannot be written.
    """
    if not place.parts:
        raise confine.special(place.shown, "a folder")
    if place.parts[0] == "dev" and place.parts[1:2] != ("shm",):
        raise confine.special(place.shown, "in the folder of devices")
    try:
        with confine.folder(place.parts[:-1], make=expected is None) as parent:
            return _replace(parent, place, data, expected)
    except (OSError, ValueError) as error:
        raise confine.failure(error, place.shown, "written") from error


def _replace(parent: int, place: Place, data: bytes, expected: os.stat_result | None) -> bool:
    name = place.parts[-1]
    before = _present(parent, place)
    draft = f".{os.fsdecode(os.fsencode(name)[:100])}.{secrets.token_hex(6)}.kage"
    descriptor = os.open(draft, _CREATE, 0o666, dir_fd=parent)
    try:
        try:
            _fill(descriptor, data)
            if before is not None:
                _keep_owner_and_mode(descriptor, before)
        finally:
            os.close(descriptor)
        now = _present(parent, place)
        if expected is not None and not _same(expected, now):
            raise ToolError(
                f"{place.shown} changed while it was being edited", fix="Read it again and retry"
            )
        os.rename(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=parent)
        raise
    return before is None


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
