"""Change single keys and tables of a TOML settings file; every other byte stays as it is.

The text is cut at the statements that change, never written anew, so comments, order and white
space survive. Each change is proven before it counts: what ``tomllib`` reads from the new text
must be exactly the old data with that change.
"""

from __future__ import annotations

import copy
import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kage.config.documents import Document, Unreadable, parse_toml
from kage.config.layout import KeyPath, Statement, statements
from kage.config.tables import dotted
from kage.core.errors import ConfigError, KageError

Value = Any  # what TOML can hold


class TomlText:
    """The text of one TOML file and the changes made to it so far.

    Args:
        file: Named in errors; nothing is read or written here.
        text: What the file holds.

    Raises:
        ConfigError: it is no valid TOML; kage does not touch such a file.
    """

    def __init__(self, file: Path, text: str) -> None:
        self.file = file
        self.before = text
        self._mark = "\ufeff" if text.startswith("\ufeff") else ""
        self._text = text.removeprefix(self._mark)
        self.data = self._parsed().data

    @property
    def text(self) -> str:
        """The text with all changes."""
        return self._mark + self._text

    @property
    def changed(self) -> bool:
        """Whether the text differs from what it was."""
        return self.text != self.before

    def get(self, path: KeyPath, default: Value = None) -> Value:
        """Give the value at ``path``."""
        found: Value = self.data
        for part in path:
            if not isinstance(found, dict) or part not in found:
                return default
            found = found[part]
        return found

    def line(self, path: KeyPath) -> int:
        """Give the line (1-based) of ``path``, 0 when it is not there."""
        return self._parsed().positions.line(path)

    def diff(self) -> str:
        """Give all changes as a unified diff."""
        name = str(self.file)
        lines = difflib.unified_diff(
            _lines(self.before),
            _lines(self.text),
            fromfile=name,
            tofile=name,
            lineterm="",
        )
        return "".join(f"{line}\n" for line in lines)

    def set(self, path: KeyPath, value: Value) -> None:
        """Give ``path`` the plain ``value``; tables around it are made when they are missing.

        Raises:
            KageError: something on the way is no table, or the text cannot take it.
        """
        expected = copy.deepcopy(self.data)
        table = expected
        for part in path[:-1]:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise self._stuck(path, f"{dotted(path[:-1])} is no table")
        if isinstance(table.get(path[-1]), dict) and not isinstance(value, dict):
            raise self._stuck(path, "it is a table")
        table[path[-1]] = value
        self._accept(path, _Change(self._text, self.data).set(path, value), expected)

    def put(self, path: KeyPath, table: Mapping[str, Value]) -> None:
        """Write a whole table, in place of the one that may stand there.

        Raises:
            KageError: the text cannot take it.
        """
        if self.get(path) is not None:
            self.remove(path)
        expected = copy.deepcopy(self.data)
        around = expected
        for part in path[:-1]:
            around = around.setdefault(part, {})
            if not isinstance(around, dict):
                raise self._stuck(path, f"{dotted(path[:-1])} is no table")
        around[path[-1]] = copy.deepcopy(dict(table))
        self._accept(path, _Change(self._text, self.data).put(path, table), expected)

    def remove(self, path: KeyPath) -> bool:
        """Take out a key or a whole table with all that is in it; False when it is not there.

        Raises:
            KageError: the text cannot do without it.
        """
        if self.get(path) is None:
            return False
        expected = copy.deepcopy(self.data)
        around = expected
        for part in path[:-1]:
            around = around[part]
        del around[path[-1]]
        self._accept(path, _Change(self._text, self.data).remove(path), expected)
        return True

    def _parsed(self) -> Document:
        try:
            return parse_toml(self.file, self._text)
        except Unreadable as error:
            raise ConfigError((error.fault,)) from error

    def _accept(self, path: KeyPath, text: str, expected: Value) -> None:
        try:
            data = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
            raise self._stuck(path, "the way it is written leaves no room for it") from error
        if _filled(data) != _filled(expected):
            raise self._stuck(path, "the way it is written leaves no room for it")
        self._text, self.data = text, data

    def _stuck(self, path: KeyPath, why: str) -> KageError:
        line = self.line(path)
        place = f"{self.file}:{line}" if line else str(self.file)
        return KageError(
            f"{place}: {dotted(path)} cannot be changed", why=why, fix="Change it by hand"
        )


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").replace("\r\n", "\n").split("\n") if text else []


def _filled(value: Value) -> Value:
    """Leave out tables with nothing in them: taking out the last key may leave one or not."""
    if not isinstance(value, dict):
        return value
    found = {key: _filled(item) for key, item in value.items()}
    return {key: item for key, item in found.items() if item != {}}


class _Change:
    """One change, made by cutting ``text`` at its statements."""

    def __init__(self, text: str, data: Mapping[str, Value]) -> None:
        self._text = text
        self._data = data
        self._all = statements(text)
        self._end = "\r\n" if "\r\n" in text else "\n"

    def set(self, path: KeyPath, value: Value) -> str:
        for one in self._all:
            if not one.header and one.path == path:
                return self._replaced(one.value, render(value))
        holder = self._holder(path)
        if holder is not None:
            return self._inside(holder, path, value)
        return self._added(path, value)

    def put(self, path: KeyPath, table: Mapping[str, Value]) -> str:
        holder = self._holder(path)
        if holder is not None:
            return self._inside(holder, path, dict(table))
        if self._dotted(path[:-1]):
            return self._added(path, dict(table))
        siblings = [one for one in self._all if one.path[: len(path) - 1] == path[:-1]]
        block = self._block(path, table)
        if siblings and path[:-1] and siblings[-1] is not self._all[-1]:
            at = siblings[-1].end
            return self._spliced(at, self._end + block)
        return self._appended(block)

    def remove(self, path: KeyPath) -> str:
        mine = [one for one in self._all if one.path[: len(path)] == path]
        if not mine:
            holder = self._holder(path)
            return self._text if holder is None else self._without(holder, path)
        pieces: list[str] = []
        at = 0
        for one in mine:
            start = one.start
            if one.header:
                start = self._before_header(start, at)
            pieces.append(self._text[at:start])
            at = one.end
        rest = self._text[at:]
        text = "".join(pieces)
        if mine[0].header and not text.strip():
            rest = rest.lstrip("\r\n")
        return text + rest

    def _before_header(self, start: int, floor: int) -> int:
        """Take one blank line above a header along with it."""
        blank = len(self._end)
        above = self._text[max(floor, start - 2 * blank) : start]
        return start - blank if above == self._end * 2 else start

    def _holder(self, path: KeyPath) -> Statement | None:
        """Give the assignment of an inline table that ``path`` lies in."""
        for one in self._all:
            if not one.header and len(one.path) < len(path) and path[: len(one.path)] == one.path:
                return one
        return None

    def _inside(self, holder: Statement, path: KeyPath, value: Value) -> str:
        whole = copy.deepcopy(_at(self._data, holder.path))
        around = whole
        for part in path[len(holder.path) : -1]:
            around = around.setdefault(part, {})
        around[path[-1]] = value
        return self._replaced(holder.value, render(whole))

    def _without(self, holder: Statement, path: KeyPath) -> str:
        whole = copy.deepcopy(_at(self._data, holder.path))
        around = whole
        for part in path[len(holder.path) : -1]:
            around = around[part]
        del around[path[-1]]
        return self._replaced(holder.value, render(whole))

    def _dotted(self, table: KeyPath) -> bool:
        """Say whether ``table`` is made by dotted keys, so that no header may name it."""
        owner: KeyPath = ()
        for one in self._all:
            if one.header:
                owner = one.path
            elif len(owner) < len(table) < len(one.path) and one.path[: len(table)] == table:
                return True
        return False

    def _added(self, path: KeyPath, value: Value) -> str:
        """Put a new assignment behind the last one of its table, or make that table."""
        table = path[:-1]
        owner: KeyPath = ()
        last: tuple[int, KeyPath] | None = None
        for one in self._all:
            if one.header:
                owner = one.path
                if owner == table:
                    last = (one.end, owner)
            elif one.path[: len(table)] == table and len(owner) <= len(table):
                last = (one.end, owner)
        if last is not None:
            key = dotted(path[len(last[1]) :])
            return self._spliced(last[0], f"{key} = {render(value)}{self._end}")
        if table:
            return self._appended(self._block(table, {path[-1]: value}))
        return self._at_root(f"{dotted(path)} = {render(value)}{self._end}")

    def _at_root(self, line: str) -> str:
        """Put an assignment above the first header and the comment that belongs to it."""
        first = next((one for one in self._all if one.header), None)
        if first is None:
            return self._spliced(len(self._text), line)
        at = first.start
        while at:
            above = self._text.rfind("\n", 0, at - 1) + 1
            if not self._text[above:at].lstrip().startswith("#"):
                break
            at = above
        return self._spliced(at, line + self._end)

    def _appended(self, block: str) -> str:
        text = self._text
        if text and not text.endswith("\n"):
            text += self._end
        gap = self._end if text.strip() and not text.endswith(self._end * 2) else ""
        return f"{text}{gap}{block}"

    def _spliced(self, at: int, added: str) -> str:
        before = self._text[:at]
        if before and not before.endswith("\n"):
            before += self._end
        return before + added + self._text[at:]

    def _block(self, path: KeyPath, table: Mapping[str, Value]) -> str:
        """Write a table under a header of its own; tables in it are written inline."""
        lines = [f"[{dotted(path)}]"]
        lines += [f"{dotted((key,))} = {render(value)}" for key, value in table.items()]
        return "".join(line + self._end for line in lines)

    def _replaced(self, span: tuple[int, int], value: str) -> str:
        return self._text[: span[0]] + value + self._text[span[1] :]


def _at(data: Mapping[str, Value], path: KeyPath) -> Value:
    found: Value = data
    for part in path:
        found = found[part]
    return found


def render(value: Value) -> str:
    """Write a value the way TOML does, on one line."""
    import tomlkit

    if isinstance(value, Mapping):
        inner = ", ".join(f"{dotted((key,))} = {render(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(render(item) for item in value)}]"
    text: str = tomlkit.item(value).as_string()
    return text
