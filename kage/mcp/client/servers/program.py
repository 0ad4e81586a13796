"""Whether a program can be started, told before anything is started."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path


def find_program(command: str, *, cwd: Path, env: Mapping[str, str]) -> str:
    """Give the path that running ``command`` in ``cwd`` under ``env`` would execute.

    A bare name is looked up on the PATH of ``env``; a relative path counts from ``cwd``. Links
    are kept, since some programs look at the name they were called by.

    Raises:
        OSError: ENOENT, EACCES, EISDIR, ENOTDIR or EINVAL, with ``filename``; ENOENT with a
            ``filename2`` means that the interpreter named in the script's first line is missing.
    """
    check_text((command, str(cwd)), env)
    _check_folder(cwd)
    if not command:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command)
    if "/" not in command:
        return _on_path(command, cwd, env)
    path = os.path.join(cwd, command)
    _check_file(path)
    return path


def check_text(argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Refuse what no process can be given.

    Raises:
        OSError: EINVAL; ``filename`` is the argument, or the name of the variable.
    """
    for word in argv:
        if not _passable(word):
            raise OSError(errno.EINVAL, "holds a NUL or half a surrogate pair", word)
    for name, value in env.items():
        if not name or "=" in name or not _passable(name):
            raise OSError(errno.EINVAL, "is no name for an environment variable", name)
        if not _passable(value):
            raise OSError(errno.EINVAL, "holds a NUL or half a surrogate pair", name)


def _passable(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _check_folder(cwd: Path) -> None:
    if not stat.S_ISDIR(os.stat(cwd).st_mode):  # os.stat raises ENOENT, EACCES, ELOOP itself
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(cwd))
    if not os.access(cwd, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(cwd))


def _on_path(command: str, cwd: Path, env: Mapping[str, str]) -> str:
    folders = env.get("PATH") or os.defpath
    # an entry that is relative (or empty: "here") counts from the child's folder
    absolute = os.pathsep.join(os.path.join(cwd, part) for part in folders.split(os.pathsep))
    found = shutil.which(command, path=absolute)
    if found is not None:
        _check_file(found)
        return found
    for folder in absolute.split(os.pathsep):
        path = os.path.join(folder, command)
        if os.path.isfile(path):  # there is one, but it may not be run
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command)


def _check_file(path: str) -> None:
    os.stat(path)  # raises ENOENT, EACCES, ENOTDIR, ELOOP, ENAMETOOLONG itself
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    interpreter = _interpreter(path)
    if interpreter and not os.path.exists(interpreter):
        text = os.strerror(errno.ENOENT)
        raise FileNotFoundError(errno.ENOENT, text, path, None, interpreter)


def _interpreter(path: str) -> str:
    """Give the absolute interpreter of a script's first line, or ""."""
    try:
        with open(path, "rb") as file:
            head = file.read(256)
    except OSError:  # may be executable and unreadable
        return ""
    if not head.startswith(b"#!"):
        return ""
    words = head[2:].split(b"\n", 1)[0].split()
    first = os.fsdecode(words[0]) if words else ""
    return first if first.startswith("/") else ""
