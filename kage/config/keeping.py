"""A TOML file kage writes whole: read leniently, replaced atomically, under a lock of its own.

What another kage wrote meanwhile is read again before each change; a file that cannot be read in
full is copied beside itself before it loses anything.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kage.core import locks
from kage.core.files import content, replace

VERSION = 1


def read_whole(path: Path, known: Collection[str]) -> tuple[dict[str, list[Any]], list[str]]:
    """Give the lists named ``known`` that stand in the file, and what had to be left out.

    A file that is not there holds nothing. The values of a list are not looked at.
    """
    nothing: dict[str, list[Any]] = {name: [] for name in known}
    try:
        raw = content(path)
    except (FileNotFoundError, NotADirectoryError):
        return nothing, []
    except OSError as error:
        return nothing, [f"the whole file ({error.strerror or error})"]
    try:
        data = tomllib.loads(raw.decode())
    except (ValueError, RecursionError) as error:
        return nothing, [f"the whole file, which is no TOML ({error})"]
    dropped: list[str] = []
    if data.get("version") != VERSION:
        dropped.append(f"what version {data.get('version')!r} means; this kage knows {VERSION}")
    dropped += [f"the key {name}" for name in data if name != "version" and name not in known]
    for name in known:
        entries = data.get(name, [])
        if isinstance(entries, list):
            nothing[name] = entries
        else:
            dropped.append(f"{name}, which is no list")
    return nothing, dropped


def write_whole(path: Path, lists: Mapping[str, list[Any]]) -> None:
    """Replace the file by one that holds ``lists``; a crash leaves the old or the new one.

    Raises:
        OSError: it cannot be written.
    """
    import tomli_w

    text = tomli_w.dumps({"version": VERSION, **{name: rows for name, rows in lists.items()}})
    replace(path, text.encode())


def keep_copy(path: Path) -> str:
    """Copy a file that is about to lose something beside itself; say where.

    Raises:
        OSError: it cannot be copied.
    """
    number = 0
    while True:
        copy = path.with_name(f"{path.name}.bak{number or ''}")
        try:
            handle = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            if content(copy) == content(path):
                return f"the file as it was is {copy}"
            number += 1
            continue
        with os.fdopen(handle, "wb") as stream:
            stream.write(content(path))
        return f"the file as it was is {copy}"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other kages from changing ``path`` meanwhile; its folder is made.

    Raises:
        OSError: the lock cannot be had, or another kage kept it for seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    lock = os.open(path.with_name(f"{path.name}.lock"), flags, 0o600)
    try:
        locks.take(lock)
        yield
    finally:
        os.close(lock)


def listed(dropped: list[str]) -> str:
    """Spell what was left out, the first few of it."""
    shown = "; ".join(dropped[:5])
    return shown if len(dropped) <= 5 else f"{shown}; and {len(dropped) - 5} more"
