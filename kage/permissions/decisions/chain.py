"""The decision log on disk: how a line is chained, and how lines are read.

A line is one JSON object with ``n`` (1, 2, 3 … across all files) and ``prev`` (SHA-256 of the line
before, without its line end). ``head.json`` beside the files holds count, hash, file and size of
the last line, so that cutting the end off shows as well. A writer moves the head behind its line,
so one that is killed in between leaves exactly one line more than the head says.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kage.core.files import reading

START = "0" * 64  # what the first line names as the one before
HEAD = "head.json"
LOCK = "lock"
FILE = re.compile(r"\d{4}-\d{2}\.jsonl")
HEAD_SIZE = 256  # bytes, padded: written in place, so it is never half a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where the log ends."""

    count: int = 0
    digest: str = START
    file: str = ""
    size: int = 0  # bytes of ``file``

    def encode(self) -> bytes:
        """Write it as one padded line."""
        data = {"count": self.count, "head": self.digest, "file": self.file, "size": self.size}
        return json.dumps(data).encode().ljust(HEAD_SIZE - 1) + b"\n"

    @classmethod
    def decode(cls, raw: bytes) -> Head | None:
        """Read it back; None when it is no head."""
        try:
            data = json.loads(raw)
        except ValueError:
            return None
        if not isinstance(data, dict):
            return None
        count, size = data.get("count"), data.get("size")
        digest, file = data.get("head"), data.get("file")
        if type(count) is not int or type(size) is not int:
            return None
        if not isinstance(digest, str) or not isinstance(file, str):
            return None
        if file and FILE.fullmatch(file) is None:
            return None
        return cls(count=count, digest=digest, file=file, size=size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line of the log."""

    file: Path
    line: int  # 1-based
    number: int
    kind: str  # "decision", "outcome", "gap"
    fields: Mapping[str, Any]  # everything the line holds, as read


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One place where the log is not what kage wrote."""

    file: Path
    line: int  # 1-based, 0 = the file as a whole
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}" if self.line else f"{self.file}: {self.what}"


def line_digest(line: bytes) -> str:
    """Give the hash the next line names."""
    return hashlib.sha256(line).hexdigest()


def files(directory: Path) -> list[Path]:
    """Give the files of the log, oldest first."""
    try:
        return sorted(item for item in directory.iterdir() if FILE.fullmatch(item.name))
    except FileNotFoundError:
        return []


def lines(file: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Yield number, content and whether it is finished, of each line of ``file``."""
    with reading(file) as stream:
        for number, raw in enumerate(stream, 1):
            yield number, raw.rstrip(b"\n"), raw.endswith(b"\n")


def parse(raw: bytes) -> dict[str, Any] | None:
    """Read one line; None when it is no JSON object with a number."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or type(data.get("n")) is not int:
        return None
    return data


def read(directory: Path) -> Iterator[Record]:
    """Yield every record that can be read, oldest first; what cannot is passed over."""
    for file in files(directory):
        for number, raw, finished in lines(file):
            data = parse(raw) if finished else None
            if data is not None:
                kind = data.get("kind")
                yield Record(
                    file=file,
                    line=number,
                    number=data["n"],
                    kind=kind if isinstance(kind, str) else "",
                    fields=data,
                )
