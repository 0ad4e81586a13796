"""Look at processes from outside, as a judge would: through /proc, not through kage."""

from __future__ import annotations

import os
import sys

import pytest

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


def state(pid: int) -> str:
    """Give the state letter of a process, "" when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return ""


def alive(pid: int) -> bool:
    """Say whether ``pid`` runs; a zombie does not."""
    return state(pid) not in {"", "Z", "X"}


def carrying(tag: str) -> set[int]:
    """Find the living processes with ``tag`` in their environment."""
    found = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                marked = tag.encode() in file.read()
        except OSError:
            continue
        if marked and alive(int(name)):
            found.add(int(name))
    return found
