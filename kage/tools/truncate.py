"""Cut long text to what a model is given, and keep the whole in a file that can be read on."""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_NOTICE = 200  # characters kept back for the notice, the path aside
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortened:
    """What fits, where the whole is (None: nothing was cut, or no file could be written)."""

    text: str
    path: Path | None
    total: int  # characters before cutting


def shorten(
    text: str, *, limit: int, scratch: Path, name: str, keep: Literal["head", "both"] = "head"
) -> Shortened:
    """Cut ``text`` to ``limit`` characters, the notice included, on line borders where it can.

    What does not fit goes, with all the rest, into a file called after ``name`` in ``scratch``;
    the notice says how much is shown and where the file is. ``keep`` "both" keeps the head and
    the tail. A disk that cannot be written costs the file, never the result.
    """
    total = len(text)
    if total <= limit:
        return Shortened(text=text, path=None, total=total)
    path, trouble = keep_whole(text, scratch=scratch, name=name)
    lost = f"the rest could not be kept: {trouble}"
    where = f"the whole is in {path} for the read tool" if path else lost
    room = max(limit - len(where) - _NOTICE, 0)
    head, tail = split(text, room, keep=keep)
    shown = len(head) + len(tail)
    notice = f"[{shown:,} of {total:,} characters shown; {where}]"
    if tail:
        notice = f"[… {total - shown:,} characters left out here …]\n{notice}"
    pieces = [piece for piece in (head.rstrip("\n"), notice, tail) if piece]
    return Shortened(text="\n".join(pieces)[:limit], path=path, total=total)


def split(text: str, room: int, *, keep: Literal["head", "both"]) -> tuple[str, str]:
    """Give the parts of ``text`` that fit into ``room``: head, and tail for "both"."""
    if keep == "head":
        return text[: _border_before(text, room)], ""
    half = room // 2
    start = _border_after(text, len(text) - half)
    return text[: _border_before(text, half)], text[start:]


def _border_before(text: str, at: int) -> int:
    """Move a cut back to a line's end, at most half of the way, else between two characters."""
    line = text.rfind("\n", at // 2, at)
    if line >= 0:
        return line + 1
    for _ in range(16):
        if 0 < at < len(text) and _joins(text[at]):
            at -= 1
    return at


def _border_after(text: str, at: int) -> int:
    line = text.find("\n", at, at + (len(text) - at) // 2)
    if line >= 0:
        return line + 1
    for _ in range(16):
        if 0 < at < len(text) and _joins(text[at]):
            at += 1
    return at


def _joins(character: str) -> bool:
    """Say whether a character belongs to the one before it: combining, joiner, variation."""
    return unicodedata.combining(character) != 0 or character in "\u200d\ufe0f\ufe0e"


def keep_whole(text: str, *, scratch: Path, name: str) -> tuple[Path | None, str]:
    """Write ``text`` to a new file in ``scratch``; its path, or None and the reason."""
    try:
        descriptor, path = create(scratch, name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError as error:
        return None, error.strerror or str(error)
    return path, ""


def create(scratch: Path, name: str) -> tuple[int, Path]:
    """Make a new file in ``scratch`` that only its owner can read; descriptor and path.

    Raises:
        OSError: the folder or the file cannot be made.
    """
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._")[:80] or "output"
    number = 1
    while True:
        path = scratch / (f"{stem}.txt" if number == 1 else f"{stem}-{number}.txt")
        try:
            return os.open(path, _CREATE, 0o600), path
        except FileExistsError:
            number += 1
