"""The one spelling of JSON arguments that is shown, hashed, sealed and sent."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping

MAX_DEPTH = 100  # deeper than any real schema, shallower than Python's recursion limit

MAX_DIGITS = 4_000  # of an integer; Python refuses to write more than 4,300
_TOO_BIG = 10**MAX_DIGITS
_ENCODER = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=False,
    allow_nan=False,
    default=dict,  # a mapping that is no dict
)


class NotCanonical(ValueError):
    """The value has no canonical form; the text names the path and the reason."""


def canonical(value: object) -> bytes:
    """Write ``value`` as JSON with sorted keys, compact, in UTF-8.

    Raises:
        NotCanonical: for NaN, infinities, lone surrogates, keys that are no strings, values
            JSON does not have, integers of more than ``MAX_DIGITS`` digits, and nesting over
            ``MAX_DEPTH``.
    """
    _check(value, "arguments", 0)
    return _ENCODER.encode(value).encode()


def rewritten(value: object) -> bytes:
    """Write what was canonical before, without looking through it again.

    Raises:
        ValueError: it never was.
    """
    try:
        return _ENCODER.encode(value).encode()
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def digest(value: object) -> str:
    """Give the SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _check(value: object, path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise NotCanonical(f"{path} is nested deeper than {MAX_DEPTH}")
    if type(value) is str and value.isascii():  # most values; each call is checked thrice
        return
    match value:
        case None | bool():
            pass
        case int():
            if abs(value) >= _TOO_BIG:
                raise NotCanonical(f"{path} is an integer of more than {MAX_DIGITS} digits")
        case float():
            if not math.isfinite(value):
                raise NotCanonical(f"{path} is {value}, which JSON cannot carry")
        case str():
            _check_text(value, path)
        case Mapping():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise NotCanonical(f"{path} has the key {key!r}, which is no string")
                _check_text(key, f"a key of {path}")
                _check(item, f"{path}.{key}", depth + 1)
        case list() | tuple():
            for index, item in enumerate(value):
                _check(item, f"{path}[{index}]", depth + 1)
        case _:
            raise NotCanonical(f"{path} is a {type(value).__name__}, which JSON cannot carry")


def _check_text(text: str, path: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotCanonical(f"{path} holds half a surrogate pair") from None
