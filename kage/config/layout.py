"""Where each statement of a TOML text begins and ends, so that one can change and the rest stay."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

KeyPath = tuple[str, ...]

_TOKEN = re.compile(
    r"""
    (?P<string> \"\"\"(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}
              | '''(?:[^']|'{1,2}(?!'))*'{3,5}
              | "(?:[^"\\\n]|\\.)*"
              | '[^'\n]*' )
  | (?P<comment> \#[^\n]* )
  | (?P<newline> \n )
  | (?P<mark> [\[\]{},=] )
  | (?P<word> [^\s\[\]{},=\#"']+ )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A header (``[a.b]``) or an assignment; offsets count characters, ends are exclusive."""

    path: KeyPath  # whole, from the root
    header: bool
    array: bool = False  # it belongs to an array of tables
    start: int  # of its first line
    end: int  # behind the newline of its last line
    value: tuple[int, int] = (0, 0)  # of an assignment


def statements(text: str) -> tuple[Statement, ...]:
    """Give every statement of ``text``, which ``tomllib`` has accepted, in its order."""
    return tuple(_Reader(text).run())


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_TOKEN.finditer(text))
        self._next = 0

    def run(self) -> Iterator[Statement]:
        table: KeyPath = ()
        arrays: set[KeyPath] = set()
        while self._next < len(self._tokens):
            first = self._tokens[self._next]
            if first.lastgroup in {"newline", "comment"}:
                self._next += 1
                continue
            start = self._text.rfind("\n", 0, first.start()) + 1
            if first[0] == "[" and first.lastgroup == "mark":
                array = self._is_array()
                table = self._header()
                if array:
                    arrays.add(table)
                inside = any(table[: len(one)] == one for one in arrays)
                yield Statement(
                    path=table, header=True, array=inside, start=start, end=self._line_end()
                )
                continue
            key = self._key("=")
            span = self._value()
            yield Statement(
                path=table + key,
                header=False,
                array=any(table[: len(one)] == one for one in arrays),
                start=start,
                end=self._line_end(),
                value=span,
            )

    def _is_array(self) -> bool:
        opening = self._tokens[self._next]
        return self._text[opening.end() : opening.end() + 1] == "["

    def _header(self) -> KeyPath:
        while self._tokens[self._next][0] == "[":
            self._next += 1
        path = self._key("]")
        while self._next < len(self._tokens) and self._tokens[self._next][0] == "]":
            self._next += 1
        return path

    def _key(self, end: str) -> KeyPath:
        parts: list[str] = []
        while self._next < len(self._tokens):
            token = self._tokens[self._next]
            if token.lastgroup == "mark" and token[0] == end:
                break
            self._next += 1
            if token.lastgroup == "string":
                parts.append(_plain(token[0]))
            else:
                parts.extend(part for part in token[0].split(".") if part)
        if end == "=":
            self._next += 1
        return tuple(parts)

    def _value(self) -> tuple[int, int]:
        """Walk over one value; its words lie between the ``=`` and the end or a comment."""
        start = end = -1
        depth = 0
        while self._next < len(self._tokens):
            token = self._tokens[self._next]
            if depth == 0 and token.lastgroup in {"newline", "comment"}:
                break
            self._next += 1
            if token.lastgroup in {"newline", "comment"}:
                continue
            if token.lastgroup == "mark":
                depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
            start = token.start() if start < 0 else start
            end = token.end()
        return start, end

    def _line_end(self) -> int:
        while self._next < len(self._tokens):
            token = self._tokens[self._next]
            self._next += 1
            if token.lastgroup == "newline":
                return token.end()
        return len(self._text)


def _plain(token: str) -> str:
    if "\\" not in token:
        return token[1:-1]
    return str(tomllib.loads(f"k={token}")["k"])
