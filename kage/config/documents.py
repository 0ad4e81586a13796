"""Read one settings file, TOML or JSON, whatever its state: a mistake becomes a fault."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kage.config.positions import Positions, json_positions, toml_positions
from kage.config.schema import Place
from kage.core.errors import ConfigFault

MAX_BYTES = 512 << 10
_MAX_DOTS = 200  # in one line; tomllib takes quadratic time for longer dotted keys
INLINE = Path("--mcp-config")  # stands for the file of JSON given on the command line
_WHERE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A parsed file and where its keys stand."""

    file: Path
    data: dict[str, Any]  # what TOML or JSON can hold
    positions: Positions
    json: bool = False

    def place(self, path: tuple[str | int, ...]) -> Place:
        """Give the place of the key ``path``."""
        return Place(file=self.file, line=self.positions.line(path))


class Unreadable(Exception):
    """The file holds nothing to use; ``fault`` says why."""

    def __init__(self, fault: ConfigFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def read_document(file: Path, *, named: bool) -> Document | None:
    """Read and parse ``file``; None when it is not there and the person did not name it.

    A named file may be a pipe. The content decides between TOML and JSON when the name does not
    end in either.

    Raises:
        Unreadable: for everything that keeps it from being used.
    """
    try:
        raw = _read(file, named=named)
    except FileNotFoundError:
        if not named:
            return None
        raise Unreadable(_fault(file, "does not exist")) from None
    except NotADirectoryError:
        if not named:
            return None
        raise Unreadable(_fault(file, "does not exist")) from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise Unreadable(_fault(file, f"cannot be read: {reason}")) from error
    text = _decode(file, raw)
    if _is_json(file, text):
        return parse_json(file, text)
    return parse_toml(file, text)


def read_text(file: Path, *, named: bool = False) -> str:
    """Read ``file`` as it is, a byte order mark and line ends included; a named one may be a pipe.

    Raises:
        FileNotFoundError: it is not there.
        Unreadable: for everything else that keeps it from being used.
    """
    try:
        raw = _read(file, named=named)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise Unreadable(_fault(file, f"cannot be read: {reason}")) from error
    _decode(file, raw)
    return raw.decode()


def parse_toml(file: Path, text: str) -> Document:
    """Parse TOML.

    Raises:
        Unreadable: with the line of the mistake.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > _MAX_DOTS:
            raise Unreadable(_fault(file, "has more dots than a settings file needs", number))
    last = text.rstrip().count("\n") + 1
    data = _guarded(file, last, lambda: tomllib.loads(text))
    return Document(file=file, data=data, positions=toml_positions(text))


def parse_json(file: Path, text: str) -> Document:
    """Parse JSON, whose root must be an object.

    Raises:
        Unreadable: with the line of the mistake; keys that stand twice are one.
    """
    data = _guarded(
        file, 1, lambda: json.loads(text, object_pairs_hook=_no_twins, parse_constant=_no_constant)
    )
    if not isinstance(data, dict):
        raise Unreadable(_fault(file, "is no JSON object", 1))
    return Document(file=file, data=data, positions=json_positions(text), json=True)


def _guarded(file: Path, last: int, parse: Callable[[], Any]) -> Any:  # what TOML or JSON can hold
    try:
        return parse()
    except tomllib.TOMLDecodeError as error:
        text = str(error)
        where = _WHERE.search(text)
        what = _WHERE.sub("", text)
        line = int(where[1]) if where and where[1] else last  # else it is the end of the text
        raise Unreadable(_fault(file, f"is no valid TOML: {what}", line)) from error
    except json.JSONDecodeError as error:
        raise Unreadable(_fault(file, f"is no valid JSON: {error.msg}", error.lineno)) from error
    except RecursionError:
        raise Unreadable(_fault(file, "is nested too deeply")) from None
    except ValueError as error:  # a number too long to read, a date that is none, a key twice
        raise Unreadable(_fault(file, f"cannot be read: {error}")) from error


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {json.dumps(key)} stands twice in one object")
            seen.add(key)
    return found


def _no_constant(word: str) -> Any:  # json wants a value, but there is none
    raise ValueError(f"{word} is no JSON")


def _read(file: Path, *, named: bool) -> bytes:
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        kind = os.fstat(descriptor)
        if stat.S_ISDIR(kind.st_mode):
            raise ValueError("it is a directory")
        if not stat.S_ISREG(kind.st_mode):
            if not named:
                raise ValueError("it is no regular file")
            os.set_blocking(descriptor, True)
        parts: list[bytes] = []
        size = 0
        while size <= MAX_BYTES and (part := os.read(descriptor, 1 << 16)):
            parts.append(part)
            size += len(part)
        if size > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES >> 10} KiB")
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _decode(file: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Unreadable(_fault(file, "is not UTF-8", line)) from error


def _is_json(file: Path, text: str) -> bool:
    if file.suffix in {".toml", ".json"}:
        return file.suffix == ".json"
    return text.lstrip().startswith("{")


def _fault(file: Path, what: str, line: int = 0) -> ConfigFault:
    return ConfigFault(file=file, line=line, key="", what=what)
