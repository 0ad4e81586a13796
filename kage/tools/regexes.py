"""Tell which regular expressions mean the same to ripgrep and to Python."""

from __future__ import annotations

import re

from kage.core.errors import ToolError

MAX_LENGTH = 10_000  # characters of a pattern

_ESCAPES = frozenset("dDwWsSbBntrfva")
_GROUPS = re.compile(r"\(\?(?::|P<[A-Za-z_]\w*>|[imsU]+\)|[ims]+:)")
_NEEDS = "it needs ripgrep, which is not installed"


def check(pattern: str) -> None:
    """Refuse what no engine takes.

    Raises:
        ToolError: the pattern is empty, too long, or holds a line feed or NUL.
    """
    if not pattern:
        raise ToolError("The pattern is empty")
    if len(pattern) > MAX_LENGTH:
        raise ToolError(f"The pattern is longer than {MAX_LENGTH:,} characters")
    if "\n" in pattern or "\0" in pattern:
        raise ToolError("The pattern holds a line feed or NUL; a search goes line by line")
    try:
        pattern.encode()
    except UnicodeEncodeError as error:
        raise ToolError("The pattern holds half a surrogate pair") from error


def portable(pattern: str, *, literal: bool, ignore_case: bool) -> re.Pattern[str]:
    """Compile ``pattern`` for Python where it means the same as for ripgrep.

    Raises:
        ToolError: it does not, or it is no regular expression.
    """
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
    if literal:
        return re.compile(re.escape(pattern), flags)
    _check_common(pattern)
    try:
        return re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(
            "The pattern cannot be used", why=str(error), fix="Set literal for plain text"
        ) from error


def _check_common(pattern: str) -> None:
    index = 0
    in_class = False
    while index < len(pattern):
        character = pattern[index]
        if character == "\\":
            _check_escape(pattern[index + 1 : index + 3])
            index += 2
            continue
        if in_class:
            if character == "[" or pattern[index : index + 2] in ("&&", "--", "~~"):
                raise _foreign(pattern[index : index + 2])
            in_class = character != "]"
        elif character == "[":
            in_class = True
            index += _class_start(pattern, index)
            continue
        elif pattern.startswith("(?", index) and not _GROUPS.match(pattern, index):
            raise _foreign(pattern[index : index + 4])
        elif character in "*+?}" and pattern[index + 1 : index + 2] == "+":
            raise _foreign(pattern[index : index + 2])
        index += 1


def _class_start(pattern: str, index: int) -> int:
    """Give the length of ``[``, ``[^`` and a first ``]``, which belongs to the class."""
    length = 2 if pattern.startswith("[^", index) else 1
    return length + (1 if pattern.startswith("]", index + length) else 0)


def _check_escape(text: str) -> None:
    character = text[:1]
    if character == "x" and text != "x{":
        return
    if character.isalnum() and character not in _ESCAPES:
        raise _foreign(f"\\{text}")


def _foreign(piece: str) -> ToolError:
    return ToolError(f"The pattern uses {piece!r}", why=_NEEDS, fix="Write it another way")
