"""The globs of permission rules: ``*`` is any text, ``?`` any character, nothing else is special.

A backslash in front of ``*``, ``?`` or another backslash makes it plain; in front of anything else
it is a plain backslash, since shell lines are full of them. Both wildcards cross ``/``, spaces and
line ends: a rule is read by a person, who sees text and not its parts.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache


class _Wild(Enum):
    ANY = "*"
    ONE = "?"


def tokens(pattern: str) -> list[str | _Wild]:
    """Split ``pattern`` into plain characters and wildcards."""
    found: list[str | _Wild] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and pattern[at + 1 : at + 2] in ("*", "?", "\\"):
            found.append(pattern[at + 1])
            at += 2
            continue
        found.append(_Wild(char) if char in "*?" else char)
        at += 1
    return found


def escape(text: str) -> str:
    """Give the pattern that matches ``text`` and nothing else."""
    return re.sub(r"[*?\\]", r"\\\g<0>", text)


def literal(pattern: str) -> str | None:
    """Give the only text ``pattern`` matches, or None when it has a wildcard."""
    found = tokens(pattern)
    plain = [item for item in found if isinstance(item, str)]
    return "".join(plain) if len(plain) == len(found) else None


def head(pattern: str) -> str:
    """Give the plain text in front of the first wildcard."""
    plain: list[str] = []
    for item in tokens(pattern):
        if not isinstance(item, str):
            break
        plain.append(item)
    return "".join(plain)


def tail(pattern: str) -> str:
    """Give the plain text behind the last wildcard; "" when there is no wildcard."""
    plain: list[str] = []
    for item in reversed(tokens(pattern)):
        if not isinstance(item, str):
            return "".join(reversed(plain))
        plain.append(item)
    return ""


def weight(pattern: str) -> int:
    """Say how specific ``pattern`` is: how many characters it fixes."""
    return sum(isinstance(item, str) for item in tokens(pattern))


def matches(pattern: str, text: str, *, fold: bool = False) -> bool:
    """Say whether the whole of ``text`` fits; ``fold`` ignores case."""
    if fold:
        pattern, text = pattern.casefold(), text.casefold()
    return _compiled(pattern).fullmatch(text) is not None


def in_folder(pattern: str) -> bool:
    """Say whether a wildcard of ``pattern`` stands behind a slash: it is about a folder."""
    return any(_bound(tokens(pattern)))


def matches_words(pattern: str, text: str) -> bool:
    """Like ``matches``, but a wildcard behind a slash ends with its word, as it does for a shell.

    So ``rm build/*`` is about one thing in that folder, whatever quotes or expansions say.
    """
    return _worded(pattern).fullmatch(text) is not None


def _bound(found: list[str | _Wild]) -> list[bool]:
    """Say of each token whether it is a wildcard of a word that has a slash in front of it."""
    bound: list[bool] = []
    slash = False
    for item in found:
        if item == "/":
            slash = True
        elif isinstance(item, str) and item.isspace():
            slash = False
        bound.append(slash and not isinstance(item, str))
    return bound


@lru_cache(maxsize=1024)
def _worded(pattern: str) -> re.Pattern[str]:
    found = tokens(pattern)
    parts = [""]
    stars: list[str] = []
    for item, bound in zip(found, _bound(found), strict=True):
        if item is _Wild.ANY:
            parts.append("")
            stars.append(_PART if bound else ".")
        elif item is _Wild.ONE:
            parts[-1] += _LETTER
        else:
            parts[-1] += re.escape(str(item))
    text = parts[0]
    for number, (star, part) in enumerate(zip(stars, parts[1:], strict=True), 1):
        if number == len(stars):
            text += f"{star}*{part}"
        elif part:
            text += f"(?>{star}*?{part})"
        else:
            text += f"{star}*"
    return re.compile(text, re.DOTALL)


_PART = r"[^\s$`{}\\\\'\"~]"  # nothing that becomes more than one word
_LETTER = r"[^$`{}~*?\s/\\\\]"  # one character that stays one


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Write ``pattern`` as an expression without backtracking across stars.

    Each ``*x`` takes the first ``x`` there is and never comes back to it; only the text behind
    the last star is tied to the end. So a hostile value costs length times pattern at most.
    """
    parts = [""]
    for item in tokens(pattern):
        if item is _Wild.ANY:
            parts.append("")
        else:
            parts[-1] += "." if item is _Wild.ONE else re.escape(str(item))
    first, *rest = parts
    if not rest:
        return re.compile(first, re.DOTALL)
    *middle, last = rest
    text = first + "".join(f"(?>.*?{part})" for part in middle if part) + f".*{last}"
    return re.compile(text, re.DOTALL)
