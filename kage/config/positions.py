"""On which line a key of a TOML or JSON text stands; ``tomllib`` and ``json`` do not tell.

The texts have already been read by those, so the scanners here need not judge them: they walk
over the tokens once and note where each key begins.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field

Path = tuple[str | int, ...]
_DEEPEST = 8  # no message needs a deeper key; keeps hostile nesting linear


@dataclass(slots=True)
class Positions:
    """Lines (1-based) by key path; an index stands for an element of an array of tables."""

    lines: dict[Path, int] = field(default_factory=dict)

    def note(self, path: Path, line: int) -> None:
        """Remember the first line of ``path`` and of what it lies in."""
        for length in range(1, min(len(path), _DEEPEST) + 1):
            self.lines.setdefault(path[:length], line)

    def line(self, path: Path) -> int:
        """Give the line of ``path`` or of the nearest thing around it; 0 when there is none."""
        for length in range(len(path), 0, -1):
            found = self.lines.get(path[:length])
            if found is not None:
                return found
        return 0


_TOML = re.compile(
    r"""
    (?P<string> \"\"\"(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}
              | '''(?:[^']|'{1,2}(?!'))*'{3,5}
              | "(?:[^"\\\n]|\\.)*"
              | '[^'\n]*' )
  | (?P<comment> \#[^\n]* )
  | (?P<mark> [\n\[\]{},=] )
  | (?P<word> [^\s\[\]{},=\#"']+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_JSON = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*")|(?P<mark>[\[\]{},:])|(?P<newline>\n)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int


def toml_positions(text: str) -> Positions:
    """Find the keys of ``text``, which ``tomllib`` has accepted."""
    scanner = _TomlScanner(text.replace("\r\n", "\n"))
    scanner.run()
    return scanner.found


class _TomlScanner:
    def __init__(self, text: str) -> None:
        self.found = Positions()
        self._tokens = _toml_tokens(text)
        self._arrays: dict[Path, int] = {}  # arrays of tables: how many elements so far

    def run(self) -> None:
        table: Path = ()
        for token in self._tokens:
            if token.text == "\n" and token.kind == "mark":
                continue
            if token.text == "[" and token.kind == "mark":
                table = self._header(token)
            else:
                key, end = self._key(token)
                if end is None:
                    return
                path = table + key
                self.found.note(path, token.line)
                self._value(next(self._tokens, None), path)

    def _header(self, opening: _Token) -> Path:
        first = next(self._tokens, opening)
        array = first.text == "[" and first.kind == "mark"
        if array:
            first = next(self._tokens, opening)
        parts, _ = self._key(first)
        if array:
            next(self._tokens, None)  # the second closing bracket
        path: Path = ()
        for index, part in enumerate(parts):
            path += (part,)
            if array and index == len(parts) - 1:
                self._arrays[path] = self._arrays.get(path, 0) + 1
            if path in self._arrays:
                self.found.note(path, opening.line)
                path += (self._arrays[path] - 1,)
        self.found.note(path, opening.line)
        return path

    def _key(self, first: _Token) -> tuple[Path, _Token | None]:
        """Read a dotted key from ``first`` on; also gives the mark that ends it."""
        parts: list[str] = []
        token: _Token | None = first
        while token is not None and token.kind != "mark":
            if token.kind == "string":
                parts.append(_plain(token.text))
            else:
                parts.extend(part for part in token.text.split(".") if part)
            token = next(self._tokens, None)
        return tuple(parts[: _DEEPEST + 1]), token

    def _value(self, token: _Token | None, path: Path) -> None:
        if token is None or token.kind != "mark" or token.text not in "[{":
            return
        # one frame per bracket: its path, and the index of the next element when it is an array
        frames: list[tuple[Path, list[int] | None]] = [(path, [0] if token.text == "[" else None)]
        while frames:
            token = next(self._tokens, None)
            if token is None:
                return
            here, index = frames[-1]
            if token.kind != "mark":
                if index is None:
                    key, _ = self._key(token)
                    here = (here + key)[:_DEEPEST]
                    self.found.note(here, token.line)
                    token = next(self._tokens, None)
                    if token is not None and token.kind == "mark" and token.text in "[{":
                        frames.append((here, [0] if token.text == "[" else None))
            elif token.text in "]}":
                frames.pop()
            elif token.text in "[{":
                inner = here if index is None else (*here, index[0])[:_DEEPEST]
                frames.append((inner, [0] if token.text == "[" else None))
            elif token.text == "," and index is not None:
                index[0] += 1


def _toml_tokens(text: str) -> Iterator[_Token]:
    line = 1
    for match in _TOML.finditer(text):
        kind = match.lastgroup or ""
        if kind != "comment":
            yield _Token(kind, match[0], line)
        line += match[0].count("\n")


def _plain(token: str) -> str:
    if "\\" not in token:
        return token[1:-1]
    try:
        return str(tomllib.loads(f"k={token}")["k"])
    except tomllib.TOMLDecodeError:  # cannot be, the text was accepted
        return token[1:-1]


def json_positions(text: str) -> Positions:
    """Find the keys of ``text``, which ``json`` has accepted."""
    found = Positions()
    frames: list[tuple[Path, list[int] | None]] = []
    key: Path | None = None  # the path of the value that comes next
    pending = ""  # a string that may turn out to be a key
    line = pending_line = 1
    for match in _JSON.finditer(text):
        token = match[0]
        if match.lastgroup == "newline":
            line += 1
        elif match.lastgroup == "string":
            pending, pending_line = token, line
            line += token.count("\n")
        elif token in "[{":
            here = key if key is not None else _inside(frames)
            frames.append((here, [0] if token == "[" else None))
            key = None
        elif token in "]}":
            key = None
            if frames:
                frames.pop()
        elif token == ":":
            key = (*_inside(frames), _unquoted(pending))[:_DEEPEST]
            found.note(key, pending_line)
        else:
            key = None
            if frames and (index := frames[-1][1]) is not None:
                index[0] += 1
    return found


def _inside(frames: list[tuple[Path, list[int] | None]]) -> Path:
    if not frames:
        return ()
    path, index = frames[-1]
    return path if index is None else (*path, index[0])[:_DEEPEST]


def _unquoted(token: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError:  # cannot be, the text was accepted
        return token[1:-1]
