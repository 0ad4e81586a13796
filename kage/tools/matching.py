"""Find the text of an edit in a file, whatever its line ends, and explain a miss."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from kage.core.sanitise import clip

_SHOWN = 10  # line numbers named, and lines shown
_LOOKED_AT = 1 << 20  # characters searched for what was meant; the rest costs too long
_COLUMNS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The text after the edit, in how many places the old text stood, and on which lines."""

    text: str
    places: int
    lines: tuple[int, ...]  # the first ten, 1-based


def apply(text: str, old: str, new: str, *, every: bool) -> Applied:
    """Replace ``old`` by ``new`` where it stands once, or everywhere; line ends are kept.

    A model writes plain line feeds. Where the text as written is not found and the file has
    CRLF, both strings are tried with CRLF. Overlapping places count, so "aa" in "aaa" is
    ambiguous. Nothing is replaced when there are many places and not ``every``.
    """
    if old not in text and "\r\n" in text:
        old, new = _with_crlf(old), _with_crlf(new)
    elif "\r\n" in text and "\n" in new and _only_crlf(text):
        new = _with_crlf(new)
    places, starts = _places(text, old)
    if every and places > 1:
        places = text.count(old)
    changed = text
    if places == 1 or (places and every):
        changed = text.replace(old, new)
    lines = tuple(text.count("\n", 0, start) + 1 for start in starts)
    return Applied(text=changed, places=places, lines=lines)


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _only_crlf(text: str) -> bool:
    return text.count("\n") == text.count("\r\n")


def _places(text: str, old: str) -> tuple[int, list[int]]:
    found = 0
    starts: list[int] = []
    at = text.find(old)
    while at >= 0:
        found += 1
        if len(starts) < _SHOWN:
            starts.append(at)
        # overlapping places matter for two, after that the number is only told
        at = text.find(old, at + (1 if found < 2 else len(old)))
    return found, starts


def explain_miss(text: str, old: str) -> str:
    """Say why ``old`` is not in ``text``: white space, line numbers, case; show what is close."""
    lines = text[:_LOOKED_AT].replace("\r\n", "\n").split("\n")
    wanted = old[:_LOOKED_AT].replace("\r\n", "\n").split("\n")
    if all(_numbered(line) for line in wanted if line.strip()):
        return "Leave out the line numbers that read puts in front"
    loose = _find_loose(lines, wanted)
    if loose is not None:
        number, reason = loose
        there = _excerpt(lines, number, len(wanted))
        return f"Line {number} differs only in {reason}. It reads:\n{there}"
    closest = _closest(lines, wanted)
    if closest is None:
        return "Read the file again and copy the text exactly"
    return f"The closest lines are:\n{_excerpt(lines, closest, len(wanted))}"


def _numbered(line: str) -> bool:
    """Say whether a line looks like one of read's: a number, a tab, text."""
    number, tab, _ = line.partition("\t")
    return bool(tab) and number.strip().isdigit()


def _find_loose(lines: list[str], wanted: list[str]) -> tuple[int, str] | None:
    kinds: tuple[tuple[str, Callable[[str], str]], ...] = (
        ("spaces at the ends of lines", str.rstrip),
        ("indentation or tabs", str.strip),
        ("white space", _single_spaced),
        ("capital letters or white space", lambda line: _single_spaced(line).casefold()),
    )
    for reason, key in kinds:
        target = "\n".join(map(key, wanted)).strip("\n")
        if not target.strip():
            continue
        there = "\n".join(map(key, lines))
        at = there.find(target)
        if at >= 0:
            return there.count("\n", 0, at) + 1, reason
    return None


def _single_spaced(line: str) -> str:
    return " ".join(line.split())


def _closest(lines: list[str], wanted: list[str]) -> int | None:
    """Give the number of the line that shares most words with the longest wanted one."""
    offset, target = max(enumerate(wanted), key=lambda item: len(item[1].strip()))
    words = set(_words(target))
    best = 0.3  # below a third it is not what was meant
    number: int | None = None
    for index, line in enumerate(lines):
        found = set(_words(line))
        score = len(words & found) / max(len(words | found), 1)
        if score > best:
            best, number = score, index
    return None if number is None else max(number - offset, 0) + 1


def _words(line: str) -> list[str]:
    return re.findall(r"\w+", line[:1000])


def _excerpt(lines: list[str], number: int, length: int) -> str:
    """Show up to ten lines from ``number`` on, tabs marked."""
    shown = lines[number - 1 : number - 1 + min(length, _SHOWN)]
    return "\n".join(
        f"{number + index:6}\t" + clip(line.replace("\t", "→\t"), _COLUMNS)
        for index, line in enumerate(shown)
    )
