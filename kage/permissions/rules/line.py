"""A shell line taken apart: its commands, its words, and why rules may not see through it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


def word_set(text: str) -> frozenset[str]:
    """Give the words of ``text`` as a set."""
    return frozenset(text.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One simple command of a line."""

    raw: str  # as written, without redirections
    words: tuple[str, ...]  # as the shell would see them, as far as that is known; no assignments
    exact: bool  # every word is known to the last character
    assignments: str = ""  # what stands in front of its name, as written
    redirected: str = ""  # as written with redirections that touch files; "" when there are none
    redirections: str = ""  # the part of ``redirected`` behind the command


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A shell line, taken apart."""

    text: str
    commands: tuple[Command, ...]
    opaque: str  # why no allow pattern can judge it, "" when one can
    broken: bool = False  # the parser could not make sense of all of it
    targets: tuple[str, ...] = ()  # what redirections and assignments name
    feeds: tuple[str, ...] = ()  # texts a command reads as its input: heredocs, herestrings
    variables: dict[str, str] = field(default_factory=dict)  # values given to names in the line


def unescape(match: re.Match[str]) -> str:
    """Give what a backslash and one character stand for."""
    return "" if match[1] == "\n" else match[1]


def decode(text: str) -> str:
    """Spell out ``$'…'`` as far as Python's escapes agree with the shell's."""
    try:
        return text.encode("latin-1", "backslashreplace").decode("unicode_escape")
    except UnicodeDecodeError:
        return text
