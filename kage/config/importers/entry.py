"""Read one server of another host key by key; what nobody asked for is told, never dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kage.config.durations import BadDuration, parse_duration, spell_duration
from kage.config.importers.foreign import Foreign
from kage.config.importers.variables import Untranslatable, Words
from kage.config.tables import dotted
from kage.config.values import spell

_TRANSPORTS = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "remote": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}


_FIRST = ("command", "args", "cwd", "env", "env_pass", "url", "transport", "headers", "disabled")


class Bad(ValueError):
    """The entry cannot be used; the text says why."""


class Entry:
    """What is left to read of one entry, and what has become of the rest.

    Every method reads one thing under any of its spellings and writes it under kage's name.
    """

    def __init__(self, name: str, raw: object, line: int, words: Words) -> None:
        self.name = name
        self.table: dict[str, Any] = {}
        self._line = line
        self._words = words
        self._left: dict[str, Any] = dict(raw) if isinstance(raw, dict) else {}
        self._sound = isinstance(raw, dict)
        self._notes: list[str] = []

    def pop(self, *keys: str) -> Any:  # whatever the other host's file holds
        """Take out the first of ``keys`` that is there, None when none is."""
        for key in keys:
            if self._left.get(key) is not None:
                return self._left.pop(key)
            self._left.pop(key, None)
        return None

    def has(self, key: str) -> bool:
        """Say whether ``key`` is still to be read."""
        return self._left.get(key) is not None

    def note(self, text: str) -> None:
        """Tell the person something about this entry."""
        self._notes.append(text)

    def give(self, **spelled: object) -> None:
        """Put what the other host keeps in another shape where it is read like the rest."""
        self._left |= spelled

    def text(self, target: str, *keys: str) -> None:
        """Read text with variables."""
        value = self.pop(*keys)
        if value is not None:
            self.table[target] = self._text(value, keys[0])

    def texts(self, target: str, *keys: str) -> None:
        """Read a list of text with variables."""
        value = self.pop(*keys)
        if value is None:
            return
        if not isinstance(value, list):
            raise Bad(f"{keys[0]} is {_kind(value)}, expected a list of text")
        if value:
            self.table[target] = [self._text(item, keys[0]) for item in value]

    def pairs(self, target: str, *keys: str) -> None:
        """Read a table of text with variables; numbers and flags become text."""
        value = self.pop(*keys)
        if value is None:
            return
        if not isinstance(value, dict):
            raise Bad(f"{keys[0]} is {_kind(value)}, expected a table of text")
        found = self.table.setdefault(target, {})
        for name, item in value.items():
            found[str(name)] = self._text(item, f"{keys[0]}.{name}", loose=True)
        if not found:
            del self.table[target]

    def flag(self, target: str, *keys: str, default: bool = False) -> None:
        """Read true or false; ``default`` is not written."""
        value = self.pop(*keys)
        if value is None:
            return
        if not isinstance(value, bool):
            raise Bad(f"{keys[0]} is {_kind(value)}, expected true or false")
        if value is not default:
            self.table[target] = value

    def switch(self) -> None:
        """Read ``disabled`` and ``enabled``."""
        off, on = self.pop("disabled"), self.pop("enabled")
        for name, value in (("disabled", off), ("enabled", on)):
            if value is not None and not isinstance(value, bool):
                raise Bad(f"{name} is {_kind(value)}, expected true or false")
        if off is not None and off == on:
            raise Bad("enabled and disabled say the opposite of each other")
        if off is True or on is False:
            self.table["disabled"] = True

    def seconds(self, *keys: str, into: tuple[str, ...], unit: float = 1.0) -> None:
        """Read a duration: a number of ``unit`` seconds, or text like "45s"; 0 is left out."""
        value = self.pop(*keys)
        if value is None:
            return
        try:
            if isinstance(value, int | float) and not isinstance(value, bool):
                if not 0 <= value <= 1e7 / unit:  # a product could be too large for a float
                    raise Bad(f"{keys[0]} is out of range")
                length = float(value * unit)
            else:
                length = parse_duration(value)
        except BadDuration as error:
            raise Bad(f"{keys[0]} {error}") from error
        for target in into if length else ():
            self.table[target] = spell_duration(length)
        if not length:
            self.note(f"{keys[0]} is 0, so kage's own value holds")

    def where(self, *urls: str) -> None:
        """Read how the server is reached: its program, or its address with headers."""
        kind = self.pop("type", "transport")
        if kind is not None and (not isinstance(kind, str) or kind.lower() not in _TRANSPORTS):
            raise Bad(f"it is reached by {spell(kind)}, which kage does not speak")
        transport = _TRANSPORTS[kind.lower()] if kind else ""
        self.program()
        self.text("url", *(urls or ("url",)))
        self.pairs("headers", "headers")
        if "command" not in self.table and "url" not in self.table:
            raise Bad("it has neither command nor url")
        if "command" in self.table and "url" in self.table:
            raise Bad("it has both command and url")
        if "url" in self.table:
            for key in ("env", "args", "cwd"):
                if self.table.pop(key, None) is not None or self.pop(key) is not None:
                    self.note(f"{key} is left out: no process is started")
        elif self.table.pop("headers", None) is not None:
            self.note("headers are left out: the server is a process")
        if (transport == "stdio" and "url" in self.table) or (
            transport in {"http", "sse"} and "command" in self.table
        ):
            raise Bad(f"its kind is {spell(kind)}, which does not fit the rest")
        if transport == "sse":
            self.table["transport"] = "sse"

    def program(self) -> None:
        """Read folder, program, arguments and environment."""
        self.text("cwd", "cwd")
        self._words.here = self.table.get("cwd", ".") == "."
        if self.table.get("cwd") == ".":
            del self.table["cwd"]
        self.text("command", "command")
        self.texts("args", "args")
        self.pairs("env", "env")

    def leave(self, key: str, why: str) -> None:
        """Take out ``key`` if it is there, and tell why it is not carried over."""
        if key in self._left:
            del self._left[key]
            self.note(f"{key} is left out: {why}")

    def drop(self, *keys: str) -> None:
        """Take out what means nothing beyond the other host's screen."""
        for key in keys:
            self._left.pop(key, None)

    def done(self, problem: str = "") -> Foreign:
        """Give the entry; what is still unread is told."""
        if not self._sound:
            problem = "it is no table"
        left = [f"{dotted((str(key),))} is left out: kage has no word for it" for key in self._left]
        return Foreign(
            name=self.name,
            line=self._line,
            table={key: self.table[key] for key in sorted(self.table, key=_order)},
            notes=(*self._notes, *self._words.notes, *(left if not problem else ())),
            problem=problem,
        )

    def _text(self, value: object, key: str, *, loose: bool = False) -> str:
        if loose and isinstance(value, bool | int | float):
            self.note(f"{key} is {_kind(value)}, taken as text")
            value = str(value).lower() if isinstance(value, bool) else str(value)
        if not isinstance(value, str):
            raise Bad(f"{key} is {_kind(value)}, expected text")
        try:
            return self._words(value)
        except Untranslatable as error:
            raise Bad(f"{key}: {error}") from error


def _order(key: str) -> int:
    return _FIRST.index(key) if key in _FIRST else len(_FIRST)


def restart(entry: Entry, *keys: str) -> None:
    """Read ``{enabled, maxAttempts, delayMs}``: one fixed delay in milliseconds."""
    value = entry.pop(*keys)
    if value is None:
        return
    if not isinstance(value, Mapping):
        raise Bad(f"{keys[0]} is {_kind(value)}, expected a table")
    inner = Entry(keys[0], dict(value), 0, Words(translate=lambda text, words: text))
    inner.flag("enabled", "enabled", default=True)
    attempts = inner.pop("maxAttempts")
    if isinstance(attempts, int) and not isinstance(attempts, bool):
        inner.table["max_attempts"] = attempts
    elif attempts is not None:
        raise Bad(f"{keys[0]}.maxAttempts is {_kind(attempts)}, expected a number")
    inner.seconds("delayMs", into=("delay", "max_delay"), unit=0.001)
    for note in inner.done().notes:
        entry.note(f"{keys[0]}.{note}")
    if inner.table:
        entry.table["restart"] = inner.table


def _kind(value: object) -> str:
    kind = spell(value, hide=True)
    return {"true": "a flag", "false": "a flag"}.get(kind, kind)
