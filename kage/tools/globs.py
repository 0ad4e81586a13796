"""Compile glob patterns to regular expressions that match in about linear time.

Every ``*`` and ``**`` but the last becomes an atomic group: the leftmost place that fits is the
only one tried, which finds a match whenever there is one and never goes back. Braces are written
out, with a bound, so that no pattern can grow without limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kage.core.errors import ToolError

MAX_PATTERN = 1000  # characters
MAX_ALTERNATIVES = 100  # patterns that braces may stand for


def matcher(pattern: str, *, ignore_case: bool = False) -> Callable[[str], bool]:
    """Give a function that says whether a relative path, with ``/``, matches ``pattern``.

    Without a ``/`` the pattern is matched against the last name only.

    Raises:
        ToolError: the pattern is too long or its braces stand for too much.
    """
    anchored = pattern.removeprefix("./").lstrip("/")
    by_name = "/" not in pattern
    bodies = [path_regex(item) for item in expand(anchored)]
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    compiled = _compile("|".join(f"(?:{body})" for body in bodies), flags)
    if by_name:
        return lambda path: compiled.fullmatch(path[path.rfind("/") + 1 :]) is not None
    return lambda path: compiled.fullmatch(path) is not None


def _compile(source: str, flags: int) -> re.Pattern[str]:
    try:
        return re.compile(source, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError("The glob cannot be used", why=str(error)) from error


def expand(pattern: str) -> list[str]:
    """Write out ``{a,b}``, nested ones too.

    Raises:
        ToolError: there are more than ``MAX_ALTERNATIVES``, or the pattern is too long.
    """
    if len(pattern) > MAX_PATTERN:
        raise ToolError(f"The glob is longer than {MAX_PATTERN} characters")
    waiting, done = [pattern], []
    while waiting:
        current = waiting.pop()
        found = _innermost(current)
        if found is None:
            done.append(current)
        else:
            start, end = found
            for choice in current[start + 1 : end].split(","):
                waiting.append(current[:start] + choice + current[end + 1 :])
        if len(waiting) + len(done) > MAX_ALTERNATIVES:
            raise ToolError(
                f"The braces of the glob stand for more than {MAX_ALTERNATIVES} patterns",
                fix="Use fewer of them",
            )
    return sorted(set(done))


def _innermost(pattern: str) -> tuple[int, int] | None:
    """Find a pair of braces with a comma and no braces in it; what is escaped does not count."""
    start = -1
    comma = False
    skip = False
    for index, character in enumerate(pattern):
        if skip:
            skip = False
        elif character == "\\":
            skip = True
        elif character == "{":
            start, comma = index, False
        elif character == "," and start >= 0:
            comma = True
        elif character == "}" and start >= 0:
            if comma:
                return start, index
            start = -1
    return None


def path_regex(pattern: str) -> str:
    """Give the regular expression of a brace-free glob over a relative path."""
    names = [name for name in pattern.split("/") if name != "." and name]
    runs: list[list[str]] = [[]]  # what stands between two "**"
    for name in names:
        if name != "**":
            runs[-1].append(segment_regex(name))
        elif len(runs) == 1 or runs[-1]:  # "**/**" says no more than "**"
            runs.append([])
    first, *rest = ("/".join(run) for run in runs)
    if not rest:
        return first
    return _deep(first, rest)


def _deep(first: str, rest: list[str]) -> str:
    """Join runs of names by any number of folders; all but the last take the leftmost fit."""
    out = f"{first}/" if first else ""
    *middle, last = rest
    for run in middle:
        out += f"(?>(?:[^/]+/)*?{run}/)"
    return out + (f"(?:[^/]+/)*?{last}" if last else ".+")


def segment_regex(name: str) -> str:
    """Give the regular expression of a glob over one name: ``*``, ``?``, ``[…]``, escapes."""
    runs: list[str] = [""]  # what stands between two "*"
    index = 0
    while index < len(name):
        character = name[index]
        if character == "*":
            if len(runs) == 1 or runs[-1]:
                runs.append("")
            index += 1
            continue
        piece, index = _piece(name, index)
        runs[-1] += piece
    first, *rest = runs
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>[^/]*?{run})" for run in middle) + f"[^/]*{last}"


def _piece(name: str, index: int) -> tuple[str, int]:
    character = name[index]
    if character == "?":
        return "[^/]", index + 1
    if character == "\\" and index + 1 < len(name):
        return re.escape(name[index + 1]), index + 2
    if character == "[":
        end = _class_end(name, index)
        if end:
            return _class(name[index + 1 : end]), end + 1
    return re.escape(character), index + 1


def _class_end(name: str, index: int) -> int:
    """Find the bracket that ends a class; 0 when there is none and ``[`` is an ordinary one."""
    at = index + 1
    if at < len(name) and name[at] in "!^":
        at += 1
    at = name.find("]", at + 1)  # a bracket in the first place belongs to the class
    return max(at, 0)


def _class(body: str) -> str:
    negated = body[0] in "!^"
    members = body[1:] if negated else body
    out = ""
    index = 0
    while index < len(members):
        low = members[index]
        if index + 2 < len(members) and members[index + 1] == "-":
            high = members[index + 2]
            if low <= high:
                out += f"{re.escape(low)}-{re.escape(high)}"
            index += 3
        else:
            out += re.escape(low)
            index += 1
    if not out:
        return "[^/]" if negated else "(?!)"  # an empty range matches nothing
    return f"(?![/])[{'^' if negated else ''}{out}]"
