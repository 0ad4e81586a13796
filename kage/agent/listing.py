"""The files of the workspace a person may mention, as far as they can be listed in a moment."""

from __future__ import annotations

import os
import time
from pathlib import Path

from kage.core.sanitise import visible
from kage.tools.walk import Walk

MAX_FILES = 20_000
TIME = 3.0  # seconds


def listed(workspace: Path) -> tuple[str, ...]:
    """Give paths relative to ``workspace``, folders with a slash at their end, sorted.

    Left out are what git ignores, hidden files, and names a draft cannot hold as they are. Blocks
    for up to a few seconds.
    """
    parts = Path(os.path.realpath(workspace)).parts[1:]
    end = time.monotonic() + TIME
    walk = Walk(top=parts, start=parts, stop=lambda: time.monotonic() > end)
    found: list[str] = []
    try:
        for entry in walk:
            if len(found) >= MAX_FILES:
                break
            if not (entry.is_file or entry.is_folder) or not _usable(entry.path):
                continue
            found.append(f"{entry.path}/" if entry.is_folder else entry.path)
    except OSError:
        pass  # what could be read is offered
    return tuple(found)


def _usable(path: str) -> bool:
    plain = path.isascii() and path.isprintable()
    return '"' not in path and (plain or visible(path, single_line=True) == path)
