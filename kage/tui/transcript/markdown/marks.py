"""What a single line of markdown could begin: the marks of CommonMark, and columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\n]*)")
HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
ITEM = re.compile(r"( {0,3})([-+*]|\d{1,9}[.)])(?:([ \t]+)(.*)|$)")
DELIMITER = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
REFERENCE = re.compile(r" {0,3}\[[^\]]+\]:")
QUOTE = re.compile(r" {0,3}>")
UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")  # makes the paragraph above it a heading
# the start of a line that could still become a rule, an item, a fence, a heading, a table ...
UNDECIDED = re.compile(r"[ \t]*(?:[-+*=#>|~_]{1,3}|`{1,2}|\d{1,9}[.)]?)[ \t]*")
_NESTED_MARK = re.compile(r"(?:[-+*]|\d{1,9}[.)]) +")


def column(line: str) -> int:
    """Give the column of the first character that is no blank; tabs stop every four."""
    at = 0
    for character in line:
        if character == " ":
            at += 1
        elif character == "\t":
            at += 4 - at % 4
        else:
            break
    return at


def dedent(line: str, columns: int) -> str:
    """Remove up to ``columns`` columns of white space from the start."""
    at = gone = 0
    while at < len(line) and gone < columns and line[at] in " \t":
        gone += 1 if line[at] == " " else 4 - gone % 4
        at += 1
    return " " * (gone - columns) + line[at:] if at else line


def opens_fence(line: str) -> re.Match[str] | None:
    """Match a line that opens a fence: groups are the run of marks and the info text."""
    match = FENCE.fullmatch(line)
    return match if match and not (match[1][0] == "`" and "`" in match[2]) else None


def closes_fence(line: str, mark: str) -> bool:
    """Say whether ``line`` ends the fence that ``mark`` opened."""
    bare = line.strip(" \t")
    return bare.startswith(mark) and not bare.strip(mark[0]) and column(line) < 4


def content_offset(line: str) -> int:
    """Give the column where the content of the item that ``line`` starts stands."""
    match = ITEM.fullmatch(line)
    if match is None:
        return 0
    mark = len(match[1]) + len(match[2])
    if not (match[4] or "").strip():
        return mark + 1
    gap = column(" " * mark + line[mark:]) - mark
    return mark + (gap if gap <= 4 else 1)


def bare_item(line: str) -> bool:
    """Say whether ``line`` is an item's mark with nothing behind it."""
    match = ITEM.fullmatch(line)
    return bool(match and not (match[4] or "").strip())


def interrupts(line: str) -> bool:
    """Say whether ``line`` starts a list although a paragraph is open."""
    match = ITEM.fullmatch(line)
    return bool(
        match
        and (match[4] or "").strip()
        and (match[2] in "-+*" or match[2][:-1] == "1")
        and not RULE.fullmatch(line)
    )


def behind_mark(line: str) -> str:
    """Give the line without its indent and a list mark at its start."""
    bare = line.lstrip(" \t")
    match = _NESTED_MARK.match(bare)
    return bare[match.end() :] if match else bare


def innermost(line: str) -> str:
    """Give what is left of a line without indent, list marks and quote marks."""
    while (shorter := behind_mark(line).removeprefix(">").strip(" \t")) != line:
        line = shorter
    return "" if bare_item(line) else line


def breaks(line: str) -> bool:
    """Say whether ``line`` is a thematic break whatever stands above it."""
    return bool(RULE.fullmatch(line)) and not UNDERLINE.fullmatch(line)


def is_item(line: str) -> bool:
    """Say whether ``line`` starts a list item where no paragraph is open."""
    return bool(ITEM.fullmatch(line)) and not RULE.fullmatch(line)


def ends_text(line: str, above: Sequence[str]) -> bool:
    """Say whether ``line`` ends the block above it for sure: it underlines a heading, or breaks."""
    if not UNDERLINE.fullmatch(line):
        return False
    doubtful = (QUOTE, RULE, REFERENCE, DELIMITER)
    return not any(mark.match(one) for one in above for mark in doubtful) or (
        bool(RULE.fullmatch(line)) and not any(REFERENCE.match(one) for one in above)
    )
