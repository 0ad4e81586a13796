"""Characters a person does not see, and codes a terminal would act on."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from kage.permissions.scanners.flag import Code, Flag, Kind, flag

# Flags of England, Scotland and Wales are spelled with tags behind a black flag.
_TAGS = r"(?<!\U0001F3F4)(?<![\U000E0020-\U000E007F])[\U000E0000-\U000E007F]{1,400}"
_BIDI = "[\u202a-\u202e\u2066-\u2069]"
# Joiners and marks shape words of many scripts and emoji; between Latin letters they only hide.
_INVISIBLE = (
    "[\u115f\u1160\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\uffa0\ufff9-\ufffb]"
    "|(?<!^)\ufeff"
    "|(?<=[A-Za-z0-9])[\u00ad\u034f\u200c-\u200f\u061c]{1,400}(?=[A-Za-z0-9])"
    "|[\u200c-\u200f]{3,400}"
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,400}"
)
# Colours come with every log; everything else moves, asks, titles, links or copies.
_COLOUR = re.compile(r"\x1b\[(?:(?!0*8[;m])\d{0,3}[;:]?)*m")
_ACTING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f]|\r(?!\n|$)")
_AFTER = 12  # characters quoted


@functools.cache
def _hiding() -> tuple[tuple[Code, re.Pattern[str]], ...]:
    patterns = (Code.TAGS, _TAGS), (Code.BIDI, _BIDI), (Code.INVISIBLE, _INVISIBLE)
    return tuple((code, re.compile(pattern)) for code, pattern in patterns)


def hidden(text: str, kind: Kind) -> Iterator[Flag]:
    """Find tag, bidi and other invisible characters; plain ASCII has none."""
    del kind  # the same everywhere
    if text.isascii():
        return
    for code, pattern in _hiding():
        found = pattern.search(text)
        if found is not None:
            yield flag(code, _quoted(code, text, found))


def _quoted(code: Code, text: str, found: re.Match[str]) -> str:
    if code is Code.TAGS:
        spelled = "".join(chr(ord(c) - 0xE0000) for c in found[0] if 0xE0020 <= ord(c) < 0xE007F)
        return f"they spell: {spelled}" if spelled else ""
    return text[max(0, found.start() - _AFTER) : found.end() + _AFTER]


def escapes(text: str, kind: Kind) -> Iterator[Flag]:
    """Find codes that act on a terminal; the colours of a result are none."""
    if text.isprintable():
        return
    if kind is Kind.RESULT and "\x1b" in text:
        text = _COLOUR.sub("", text)
    found = _ACTING.search(text)
    if found is not None:
        yield flag(Code.ESCAPES, found.string[found.start() : found.end() + _AFTER])
