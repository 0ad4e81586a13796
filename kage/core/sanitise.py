"""Make text from servers, models, plugins, files and exceptions safe to show.

Control and escape sequences, bidi controls, zero-width and tag characters become visible; no
sink of kage parses markup, so brackets stay as they are.
"""

from __future__ import annotations

import functools
import re

# C0 and C1 controls, bidi controls, zero-width and other invisible format characters, the
# interlinear marks, tag characters, lone surrogates, non-characters. A joiner (U+200D) and the
# variation selectors U+FE0E/FE0F stay where they shape an emoji.
_RISKY = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
    "|(?<![\u00a9-\U0001faff\ufe0f])\u200d|\u200d(?![\u2190-\U0001faff])"
)
_ANY = "[^\n\t\x20-\x7e\u00a0-\u00ac\u00ae-\u02ff\u0370-\u0590\u4e00-\u9fff\uac00-\ud7a3]"


@functools.cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compile with the first text: compiling costs more than importing all of core."""
    return re.compile(_ANY), re.compile(_RISKY)


def visible(text: str, *, single_line: bool = False) -> str:
    """Give ``text`` with every character that could act on a terminal or hide spelled out.

    A control character becomes its Unicode picture (``ESC`` → ``␛``), anything else risky its
    code point in angle brackets (``<U+202E>``). Newlines and tabs stay, unless ``single_line``,
    where each run of white space becomes one space. CRLF counts as a newline.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if not (text.isascii() and text.isprintable()):  # most short text is both
        anything, risky = _patterns()
        if anything.search(text):  # most other text has nothing to look at twice
            text = risky.sub(_spell, text)
    return " ".join(text.split()) if single_line else text


def exact(text: str) -> str:
    """Give ``text`` as one safe line in which every space, tab and line break still shows."""
    return visible(text).replace("\n", "\u240a").replace("\t", "\u2409")


def _spell(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"<U+{code:04X}>"


def clip(text: str, limit: int) -> str:
    """Cut ``text`` to ``limit`` characters, the last one an ellipsis when something was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
