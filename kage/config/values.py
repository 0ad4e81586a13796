"""What a value in a settings file may be: one small check per kind of value.

A check takes what TOML or JSON gave and returns the value kage uses, or raises ``Wrong`` with what
was expected. Values that may be secret never stand in a message: their checks say ``hide``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from kage.config.durations import BadDuration, parse_duration

Check = Callable[[object], Any]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Wrong(ValueError):
    """A value is not what its key takes."""

    def __init__(
        self, expected: str, *, what: str = "has the wrong type", hide: bool = False
    ) -> None:
        super().__init__(expected)
        self.expected = expected
        self.what = what
        self.hide = hide  # the value may be a secret: only its type is told


def spell(value: object, *, hide: bool = False) -> str:
    """Name ``value`` for a message: its kind, and itself when it is short and no secret."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            kind = "text"
        case int() | float():
            kind = "a number"
        case list():
            return "a list"
        case dict():
            return "a table"
        case None:
            return "null"
        case _:
            kind = "a date or time"
    if hide:
        return kind
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return shown if len(shown) <= 60 else f"{shown[:59]}…"


def text(value: object) -> str:
    """Take any text."""
    if not isinstance(value, str):
        raise Wrong("text")
    return value


def filled(value: object) -> str:
    """Take text that is not empty, without control characters."""
    if not isinstance(value, str):
        raise Wrong("text")
    if not value.strip():
        raise Wrong("text", what="is empty")
    if _CONTROL.search(value):
        raise Wrong("text without control characters", what="holds a control character")
    return value


def hidden(value: object) -> str:
    """Take text that may be a secret."""
    if not isinstance(value, str):
        raise Wrong("text", hide=True)
    if "\0" in value:
        raise Wrong("text without NUL", what="holds a NUL character", hide=True)
    return value


def flag(value: object) -> bool:
    """Take true or false."""
    if not isinstance(value, bool):
        raise Wrong("true or false")
    return value


def whole(least: int, most: int = 1 << 40) -> Check:
    """Make a check for a whole number in a range."""

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Wrong("a whole number")
        if not least <= value <= most:
            raise Wrong(f"a whole number from {least} to {most}", what="is out of range")
        return value

    return check


def amount(value: object) -> float:
    """Take a number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Wrong("a number")
    if not math.isfinite(value) or not 0 <= value <= 1e12:
        raise Wrong("a number not below 0", what="is out of range")
    return float(value)


def duration(value: object) -> float:
    """Take a duration in seconds; 0 is allowed."""
    try:
        return parse_duration(value)
    except BadDuration as error:
        raise Wrong('a duration like "30s" or "5m", or seconds', what=str(error)) from error


def long_duration(value: object) -> float:
    """Take a duration that is not 0."""
    seconds = duration(value)
    if not seconds:
        raise Wrong('a duration like "30s" or "5m", or seconds', what="may not be 0")
    return seconds


def choice(*words: str) -> Check:
    """Make a check for one of ``words``."""
    listed = ", ".join(f'"{word}"' for word in words[:-1]) + f' or "{words[-1]}"'

    def check(value: object) -> str:
        if not isinstance(value, str):
            raise Wrong(listed)
        if value not in words:
            raise Wrong(listed, what="is not known")
        return value

    return check


def sampling(value: object) -> bool | str:
    """Take true, false or "tools"."""
    if isinstance(value, bool) or value == "tools":
        return value
    raise Wrong('true, false or "tools"')


def folders(value: object) -> tuple[str, ...] | None:
    """Take a list of folders, or false (None): not even the workspace."""
    if value is False:
        return None
    if not isinstance(value, list):
        raise Wrong("a list of folders, or false")
    return patterns(value)


def texts(value: object) -> tuple[str, ...]:
    """Take a list of texts."""
    if not isinstance(value, list):
        raise Wrong("a list of text")
    for item in value:
        if not isinstance(item, str):
            raise Wrong("a list of text", what=f"holds {spell(item, hide=True)}", hide=True)
        if "\0" in item:
            raise Wrong("text without NUL", what="holds a NUL character", hide=True)
    return tuple(value)


def patterns(value: object) -> tuple[str, ...]:
    """Take a list of texts none of which is empty."""
    found = texts(value)
    if not all(item.strip() for item in found):
        raise Wrong("a list of text", what="holds an empty text")
    return found


def variable(value: object) -> str:
    """Take the name of an environment variable; what is none may be a key put there by mistake."""
    if not isinstance(value, str):
        raise Wrong("the name of an environment variable", hide=True)
    if not _VARIABLE.fullmatch(value):
        raise Wrong("the name of an environment variable", what="is no variable's name", hide=True)
    return value


def variables(value: object) -> tuple[str, ...]:
    """Take a list of names of environment variables, or ``["*"]``."""
    found = texts(value)
    for item in found:
        if item != "*" and not _VARIABLE.fullmatch(item):
            raise Wrong('names of environment variables, or "*"', what="holds something else")
    return found


def environment(value: object) -> Mapping[str, str]:
    """Take a table of environment variables."""
    return _pairs(value, "a table of variables and their text", _is_variable)


def headers(value: object) -> Mapping[str, str]:
    """Take a table of HTTP headers."""
    found = _pairs(value, "a table of headers and their text", _HEADER.fullmatch)
    for name, item in found.items():
        if _CONTROL.search(item):
            raise Wrong("one line", what=f"has a control character in {name}", hide=True)
    return found


def _is_variable(name: str) -> bool:
    return bool(name) and "=" not in name and not _CONTROL.search(name)


def _pairs(value: object, expected: str, legal: Callable[[str], object]) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise Wrong(expected, hide=True)
    for name, item in value.items():
        if not legal(name):
            raise Wrong(expected, what=f"has the illegal name {spell(name)}", hide=True)
        if not isinstance(item, str):
            raise Wrong("text", what=f"has a wrong type at {name}", hide=True)
        if "\0" in item:
            raise Wrong("text without NUL", what=f"holds a NUL character at {name}", hide=True)
    return dict(value)


def durations(value: object) -> Mapping[str, float]:
    """Take a table of durations."""
    if not isinstance(value, dict):
        raise Wrong("a table of durations")
    found: dict[str, float] = {}
    for name, item in value.items():
        try:
            found[name] = long_duration(item)
        except Wrong as wrong:
            raise Wrong(wrong.expected, what=f"{wrong.what} at {spell(name)}") from wrong
    return found


def url(value: object) -> str:
    """Take an http(s) address; one that starts with a variable is checked once that is known."""
    if not isinstance(value, str):
        raise Wrong("an http:// or https:// address")
    if not value.startswith("${"):
        check_url(value)
    return value


def secure_url(value: object) -> str:
    """Take an https address with a path, as a client's own description has."""
    expected = "an https:// address with a path"
    found = url(value)
    parts = urlsplit(found)
    if parts.scheme != "https" or parts.path in {"", "/"}:
        raise Wrong(expected, what="is no such address")
    return found


def check_url(value: str) -> None:
    """Say whether ``value`` is an http(s) address with a host.

    Raises:
        Wrong: it is none.
    """
    expected = "an http:// or https:// address"
    try:
        parts = urlsplit(value)
        host = parts.hostname
        if "${" not in value:
            _ = parts.port
    except ValueError:
        raise Wrong(expected, what="is no address", hide=True) from None
    if parts.scheme not in {"http", "https"}:
        raise Wrong(expected, what="is no http address", hide="@" in value)
    if not host or re.search(r"[\s\x00-\x1f\x7f]", value):
        raise Wrong(expected, what="is no address", hide=True)
