"""Durations as people write them: ``30s``, ``1m30s``, ``250ms``, or a number of seconds."""

from __future__ import annotations

import math
import re

_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_WHOLE = re.compile(rf"(?:{_PART.pattern} ?)+")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
LARGEST_BARE = 3600  # a number above this without a unit is taken for milliseconds
LONGEST = 366 * 24 * 3600.0


class BadDuration(ValueError):
    """The value is no duration; the text says what is wrong with it."""


def parse_duration(value: object) -> float:
    """Turn ``value`` into seconds.

    Text is one or more numbers with a unit (``ms``, ``s``, ``m``, ``h``); a bare number, as a
    number or as text, is seconds and may not be above 3600.

    Raises:
        BadDuration: anything else, negative or not finite values, and more than a year.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadDuration("is no duration")
    if isinstance(value, str):
        text = value.strip()
        if len(text) > 64:
            raise BadDuration("is no duration")
        if _NUMBER.fullmatch(text):
            return parse_duration(float(text))
        if not _WHOLE.fullmatch(text):
            raise BadDuration("has no unit kage knows" if _NUMBER.match(text) else "is no duration")
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    elif isinstance(value, float) and not math.isfinite(value):
        raise BadDuration("is not finite")
    elif value > LARGEST_BARE:
        raise BadDuration("looks like milliseconds")
    else:
        seconds = float(value)
    if seconds < 0:
        raise BadDuration("is negative")
    if seconds > LONGEST:
        raise BadDuration("is more than a year")
    return seconds


def spell_duration(seconds: float) -> str:
    """Write ``seconds`` the way ``parse_duration`` reads them, as short as it goes."""
    milliseconds = round(seconds * 1000)
    parts: list[str] = []
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
