"""Read and replace the files kage keeps: never waiting, never leaving half of one."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
_NEVER_WAIT = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # a pipe without a writer, a terminal


def stem(server: str, origin: str) -> str:
    """Give the name, without an ending, of the file that is kept about one server of one origin."""
    plain = "".join(letter if letter in _PLAIN else "_" for letter in server)[:40].lstrip(".")
    digest = hashlib.sha256(f"{server}\0{origin}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{plain or 'server'}-{digest[:24]}"


def opened(path: Path, flags: int) -> int:
    """Open a regular file and give its descriptor; one that is made is for its owner alone.

    Raises:
        OSError: it cannot be opened, or it is a folder, a pipe or a device.
    """
    descriptor = os.open(path, flags | _NEVER_WAIT, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
    except BaseException:  # whatever it is goes on; only the descriptor must not stay
        os.close(descriptor)
        raise
    return descriptor


def reading(path: Path, *, follow: bool = True) -> BinaryIO:
    """Open a regular file to read it.

    Args:
        path: The file.
        follow: False where kage alone writes: a link there was put by somebody else.

    Raises:
        OSError: it cannot be opened, or it is a folder, a pipe, a device or an unwanted link.
    """
    return os.fdopen(opened(path, os.O_RDONLY | (0 if follow else os.O_NOFOLLOW)), "rb")


def content(path: Path) -> bytes:
    """Give what a regular file holds.

    Raises:
        OSError: it cannot be read, or it is a folder, a pipe or a device.
    """
    with reading(path) as stream:
        return stream.read()


def replace(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace a file as a whole; a crash leaves the old one or the new one.

    Raises:
        OSError: it cannot be written; the old one stands.
    """
    import tempfile  # not for those who only read: it costs `kage mcp serve` its start

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, path)
    except BaseException:  # whatever it is goes on; only the draft must not stay
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
