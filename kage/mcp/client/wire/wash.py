"""Make JSON a server sent safe to hand on: secrets replaced, halves of surrogates mended.

A secret can be as plain a word as ``object``, so the words a protocol or a schema is built of are
never replaced, and of a definition only what is written for people.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

MAX_DEPTH = 98  # the canonical form takes 100, and a definition is wrapped
PROSE = ("description", "title", "$comment", "instructions")

_HEAVY = 1_000_000  # letters, or as much in values
_STRUCTURE = ("type", "resultType", "mimeType")
_OPAQUE = ("data", "blob")  # base64 of pictures, sounds and files


class TooDeep(ValueError):
    """The value is nested deeper than ``MAX_DEPTH``."""


def wash(
    value: Mapping[str, Any],
    redact: Callable[[str], str],
    *,
    only: Collection[str] | None = None,
) -> dict[str, Any]:
    """Give ``value`` with its texts redacted and encodable.

    The base64 of a media part stays byte for byte.

    Args:
        only: Redact nothing but the texts under these keys.

    Raises:
        TooDeep: it is nested deeper than ``MAX_DEPTH``.
    """
    return _Washing(redact, only).mapping(value, 0)


def heavy(value: object) -> bool:
    """Say whether going through ``value`` would hold up the loop, and belongs into a thread."""
    return weight(value, each=200, most=_HEAVY) >= _HEAVY


def weight(value: object, *, each: int, most: int) -> int:
    """Add up the letters of JSON and ``each`` per value; counting ends once there are ``most``."""
    waiting, total = [value], 0
    while waiting and total < most:
        item = waiting.pop()
        total += each
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, Mapping):
            total += sum(map(len, item)) + each * len(item)
            waiting += item.values() if total < most else ()
        elif isinstance(item, list | tuple):
            total += each * len(item)
            waiting += item if total < most else ()
    return total


def mend(text: str) -> str:
    """Replace lone surrogates, which no file and no terminal takes."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Washing:
    def __init__(self, redact: Callable[[str], str], only: Collection[str] | None) -> None:
        self._redact = redact
        self._only = only

    def mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        _bound(depth)
        media = isinstance(value.get("mimeType"), str) or value.get("type") in ("image", "audio")
        washed: dict[str, Any] = {}
        for key, item in value.items():
            opaque = media and key in _OPAQUE and isinstance(item, str) and item.isascii()
            name = mend(str(key))
            if self._only is None and name not in _STRUCTURE:
                name = self._redact(name)
            washed[name] = item if opaque else self._value(item, str(key), depth + 1)
        return washed

    def _value(self, value: object, key: str, depth: int) -> object:
        if isinstance(value, str):
            return self._text(value, key)
        if isinstance(value, Mapping):
            return self.mapping(value, depth)
        if isinstance(value, list | tuple):
            _bound(depth)
            return [self._value(item, key, depth + 1) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)  # JSON has no word for it
        return value

    def _text(self, text: str, key: str) -> str:
        if key in _STRUCTURE or (self._only is not None and key not in self._only):
            return mend(text)
        return self._redact(mend(text))


def _bound(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise TooDeep(f"the answer is nested deeper than {MAX_DEPTH}")
