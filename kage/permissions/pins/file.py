"""The definitions that are known, one JSON file per server: what they said, to show a difference.

The decision log says which digest counts; a definition in here only shows what it looked like,
and only if that is its digest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from kage.core.canonical import digest
from kage.core.definitions import INSTRUCTIONS, pin_again
from kage.core.files import reading, replace, stem
from kage.core.pins import PinnedDefinition

MAX_BYTES = 64 << 20  # of one file
_FORMAT = "v1"

Known = Mapping[str, PinnedDefinition]


class Unreadable(ValueError):
    """A file is there and is not what kage wrote; the text says why."""


def stamp_of(path: Path) -> tuple[int, int, int] | None:
    """Give what is another once a file was replaced; None while there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def path_of(folder: Path, server: str, origin: str) -> Path:
    """Give the file about one server of one origin."""
    return folder / f"{stem(server, origin)}.{_FORMAT}.json"


def read(path: Path) -> Known:
    """Give what the file holds; nothing when there is none.

    Raises:
        OSError: it cannot be read.
        Unreadable: it is no file kage wrote.
    """
    try:
        with reading(path) as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if len(raw) > MAX_BYTES:
        raise Unreadable(f"it is larger than {MAX_BYTES >> 20} MiB")
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is no JSON: {error}") from None
    if not isinstance(data, dict):
        raise Unreadable("it is no object")
    return definitions(data.get("definitions"))


def definitions(rows: object) -> dict[str, PinnedDefinition]:
    """Read a table of definitions by name.

    Raises:
        Unreadable: it is none.
    """
    if not isinstance(rows, dict):
        raise Unreadable("it has no definitions")
    found = {}
    for name, row in rows.items():
        if not isinstance(row, dict):
            raise Unreadable(f"{name!r} is no object")
        seen, body, since = row.get("digest"), row.get("definition"), row.get("since", "")
        if not (isinstance(seen, str) and isinstance(body, dict) and isinstance(since, str)):
            raise Unreadable(f"{name!r} lacks its digest or its definition")
        found[name] = PinnedDefinition(name=name, digest=seen, written=body, since=since)
    return found


def shows(one: PinnedDefinition | None, wanted: str) -> PinnedDefinition | None:
    """Give ``one`` if it is what ``wanted`` is the digest of; a forged one shows nothing."""
    if one is None or one.digest != wanted:
        return None
    try:
        is_so = digest(one.written) if one.name == INSTRUCTIONS else pin_again(one.written)
    except ValueError:
        return None
    return one if is_so == wanted else None


def table(known: Iterable[PinnedDefinition]) -> dict[str, Any]:
    """Give definitions as JSON has them."""
    return {
        one.name: {"digest": one.digest, "since": one.since, "definition": dict(one.written)}
        for one in known
    }


def write(
    path: Path, known: Known, *, about: Mapping[str, str], redact: Callable[[str], str]
) -> None:
    """Replace the file as a whole.

    Args:
        about: Whose definitions these are, and the last decision about them.
        redact: Takes secrets out; what held one is not its digest any more, and shows nothing.

    Raises:
        OSError: it cannot be written.
    """
    text = json.dumps({**about, "definitions": table(known.values())}, sort_keys=True)
    clean = redact(text)
    if clean != text and not _is_json(clean):
        clean = json.dumps({**about, "definitions": {}}, sort_keys=True)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace(path, clean.encode("utf-8", "replace"))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
