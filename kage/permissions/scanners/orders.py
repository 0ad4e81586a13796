"""Text that gives orders to a model, or imitates the marks that kage and models go by."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator

from kage.permissions.scanners.flag import Code, Flag, Kind, flag
from kage.permissions.scanners.phrases import IMITATIONS, ORDERS, Phrase

_PLACES = 400  # at which one phrase is tried; a text of nothing but its first word costs no more
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһкмтвΑΒΕΗΙΚΜΝΟΡΤΧΥοναρ", "aeopcyxijsdhkmtvABEHIKMNOPTXYovap"
)
_GAPS = re.compile(
    "[\u00ad\u034f\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff]"
)


def orders(text: str, kind: Kind) -> Iterator[Flag]:
    """Find orders to a model in several languages; hidden and look-alike letters are undone."""
    del kind  # the same everywhere
    if found := _first(text, ORDERS):
        yield flag(Code.ORDERS, found)


def imitations(text: str, kind: Kind) -> Iterator[Flag]:
    """Find imitations of kage's questions and marks, and of the marks models go by."""
    if kind is Kind.ARGUMENTS:  # they are the model's own words, and nobody is taken in by them
        return
    if found := _first(text, IMITATIONS):
        yield flag(Code.IMITATION, found)


def _first(text: str, phrases: tuple[Phrase, ...]) -> str:
    """Give the first phrase found in any reading of ``text``, "" when there is none."""
    for low in _readings(text):
        for starts, pattern in phrases:
            for start in starts:
                if start in low and (found := _at(low, start, _compiled(pattern))):
                    return found
    return ""


def _at(low: str, start: str, pattern: re.Pattern[str]) -> str:
    place = -1
    for _ in range(_PLACES):
        place = low.find(start, place + 1)
        if place < 0:
            return ""
        if found := pattern.match(low, place):
            return found[0]
    return ""


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@functools.lru_cache(maxsize=4)
def _readings(text: str) -> tuple[str, ...]:
    """Give a text in lower case as it stands and, where it differs, as a reader would take it."""
    low = f"\n{text.lower()}"
    if text.isascii():
        return (low,)
    plain = _GAPS.sub("", unicodedata.normalize("NFKC", low))
    return tuple(dict.fromkeys((plain, plain.translate(_LOOKALIKES))))
