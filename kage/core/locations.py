"""Turn the path a model wrote into the place it means, and say whether that is inside a root."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

# opens nothing and never blocks; 0 where the system has no such thing
_PLACE_ONLY = os.O_PATH | os.O_CLOEXEC if hasattr(os, "O_PATH") else 0


def resolve(workspace: Path, raw: str) -> Path:
    """Give the real place ``raw`` names: ``~`` expanded, relative to ``workspace``, links followed.

    The last parts need not exist. Never raises for odd input: a link loop or a name the system
    refuses comes back as the absolute path, and opening it tells the reason.
    """
    absolute = os.path.join(workspace, _expanded(raw))
    try:
        return Path(_real(absolute))
    except (OSError, ValueError, RecursionError):
        return Path(os.path.abspath(absolute))


def _real(path: str) -> str:
    """Do what ``os.path.realpath`` does, which looks at each part: ask the system where it can.

    Linux names what an open descriptor stands for. Whatever is not there, or cannot be reached,
    takes the long way.
    """
    if _PLACE_ONLY:
        try:
            descriptor = os.open(path, _PLACE_ONLY)
        except OSError:
            return os.path.realpath(path)
        try:
            found = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:  # no /proc
            found = ""
        finally:
            os.close(descriptor)
        if found.startswith("/") and not found.endswith(" (deleted)"):
            return found
    return os.path.realpath(path)


def spelled(workspace: Path, raw: str) -> Path:
    """Give the absolute path ``raw`` spells: ``~`` expanded, links and ``..`` left as they are.

    Never raises; a NUL, which no name can hold, becomes U+FFFD.
    """
    return workspace / _expanded(raw)


def _expanded(raw: str) -> str:
    raw = raw.replace("\0", "\ufffd")
    if raw.startswith("~"):
        with contextlib.suppress(ValueError):  # half a surrogate pair in the user's name
            raw = os.path.expanduser(raw)
    return raw or "."


def is_inside(path: Path, roots: Iterable[Path]) -> bool:
    """Say whether the resolved ``path`` is one of the resolved ``roots`` or below one."""
    place = str(path)
    for root in roots:
        above = str(root)
        if place == above or place.startswith(above if above.endswith("/") else f"{above}/"):
            return True
    return False
