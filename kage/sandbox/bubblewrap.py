"""The command line of bubblewrap that makes a sandbox of mounts and namespaces."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

# with process ids of its own it can signal nobody outside, and ends whole
_BASE = (
    *("--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL"),
    *("--ro-bind", "/", "/"),
)
_TEMPORARY = "/tmp"  # as every program knows it


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """What is put where; a deeper place is put over a higher one."""

    place: str
    words: tuple[str, ...]


def command(
    program: str,
    *,
    network: bool,
    write: Collection[str],
    hide: Collection[str],
    show: Collection[str],
    temporary: str,
    argv: Sequence[str],
) -> tuple[str, ...]:
    """Give what runs ``argv`` with everything else read-only; all places are resolved.

    Args:
        program: bubblewrap.
        network: Whether it keeps the network.
        write: Folders it may write below.
        hide: Files and folders that look empty.
        show: What it may read although it lies in something hidden.
        temporary: The folder it finds as ``/tmp``.
        argv: What to run.
    """
    mounts = [Mount(place=_TEMPORARY, words=("--bind", temporary, _TEMPORARY))]
    mounts += [Mount(place=place, words=("--ro-bind", place, place)) for place in _named(argv)]
    mounts += [Mount(place=place, words=("--bind", place, place)) for place in write]
    mounts.append(Mount(place="/dev", words=("--dev", "/dev")))
    mounts.append(Mount(place="/proc", words=("--proc", "/proc")))
    mounts += [Mount(place=place, words=("--ro-bind", place, place)) for place in show]
    empty = [place for place in (*hide, *(() if network else ("/run",))) if os.path.exists(place)]
    mounts += [_emptied(place) for place in empty]
    mounts.sort(key=lambda mount: len(Path(mount.place).parts))  # stable: hiding comes last
    words = [word for mount in mounts for word in mount.words]
    for place in empty:  # once everything stands: what would be lost with it is refused at once
        words += ("--remount-ro", place) if os.path.isdir(place) else ()
    return (program, *_BASE, *(() if network else ("--unshare-net",)), *words, "--", *argv)


def _named(argv: Sequence[str]) -> tuple[str, ...]:
    """Give what lies right in the temporary folder and is named: the program may be in it."""
    below = (word.split("/") for word in argv if word.startswith(f"{_TEMPORARY}/"))
    places = dict.fromkeys(f"{_TEMPORARY}/{parts[2]}" for parts in below)
    return tuple(p for p in places if p[5:] not in ("", ".", "..") and os.path.exists(p))


def _emptied(place: str) -> Mount:
    if os.path.isdir(place):
        return Mount(place=place, words=("--tmpfs", place))
    return Mount(place=place, words=("--ro-bind", "/dev/null", place))
