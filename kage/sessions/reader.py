"""Read a session file whatever happened to it: keep what is whole, say what was dropped."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kage.core.files import reading
from kage.core.messages import Message
from kage.sessions.format import VERSION, BadLine, Json, decode, seconds
from kage.sessions.pairs import mend

MAX_LINE = 64 << 20  # bytes; a longer line is damage, not a message


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFile:
    """What a session file holds."""

    id: str
    workspace: str
    started: float  # seconds since the epoch, 0 when the header is lost
    messages: tuple[Message, ...]
    leaf: str  # id of the line the next one follows
    model: str  # the one used last, "" when unknown
    dropped: tuple[str, ...]  # what could not be read, in words


def read(path: Path) -> SessionFile:
    """Read the file at ``path``.

    Calls without a result (kage ended in between) get one with outcome ``unknown``, results
    without a call are dropped: the conversation that comes back can always go on.

    Raises:
        OSError: the file itself cannot be read.
    """
    header: Json = {}
    lines: list[Json] = []
    dropped: list[str] = []
    for number, line in enumerate(_lines(path), start=1):
        data = _object(line, number, dropped)
        if data is None:
            continue
        if data.get("type") != "session":
            lines.append(data)
            continue
        header = header or data
        version = data.get("version")
        if isinstance(version, int) and version > VERSION:
            dropped.append(
                f"the session was written by a newer kage (format {version}); "
                "what this one does not know is left out"
            )
    messages, leaf = _conversation(lines, dropped)
    return SessionFile(
        id=str(header.get("id", path.parent.name)),
        workspace=str(header.get("workspace", "")),
        started=seconds(header.get("created")),
        messages=tuple(mend(messages, dropped)),
        leaf=leaf,
        model=_last_model(lines),
        dropped=tuple(dropped),
    )


def _lines(path: Path) -> Iterable[bytes]:
    with reading(path) as file:
        while line := file.readline(MAX_LINE):
            yield line


def _object(line: bytes, number: int, dropped: list[str]) -> Json | None:
    if not line.strip():
        return None
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        cut = "" if line.endswith(b"\n") else ", it was cut off"
        dropped.append(f"line {number} is damaged and was left out{cut}")
        return None
    if not isinstance(data, dict):
        dropped.append(f"line {number} is no message and was left out")
        return None
    return data


def _conversation(lines: list[Json], dropped: list[str]) -> tuple[list[Message], str]:
    """Follow ``parent`` back from the last line; where a parent is lost, the line before it."""
    place = {line["id"]: index for index, line in enumerate(lines) if _is_id(line.get("id"))}
    chosen: list[int] = []
    index = len(lines) - 1
    while index >= 0:
        chosen.append(index)
        line = lines[index]
        if "parent" in line and line["parent"] is None:
            break
        parent = line.get("parent")
        before = place.get(parent) if isinstance(parent, str) else None
        index = before if before is not None and before < index else index - 1
    messages: list[Message] = []
    for at in reversed(chosen):
        if lines[at].get("type") in {"model", "note"}:
            continue
        try:
            messages.append(decode(lines[at]))
        except BadLine as error:
            dropped.append(f"a line could not be understood and was left out ({error})")
    leaf = str(lines[-1].get("id", "")) if lines else ""
    return messages, leaf


def _is_id(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _last_model(lines: list[Json]) -> str:
    for line in reversed(lines):
        model = line.get("model")
        if isinstance(model, str) and model:
            return model
    return ""
