"""Break styled text into rows: at spaces, between CJK characters, and inside words that are
too long, never inside what a person sees as one character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kage.tui.transcript.cells import chop, expand_tabs, width
from kage.tui.transcript.line import Line, Span

_WIDE = "\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff01-\uff60\U0001f000-\U0003fffd"
_OPENING = "([{（〔［｛〈《「『【〘〖｟“‘"
_CLOSING = ")\\]}）〕］｝〉》」』】〙〗｠”’、。，．！？：；・ー…゛゜々〻ヽヾゝゞ"
_SPACES = re.compile(" +")
_ASCII_WORD = re.compile(r"[^ ]+| +")
# a run of spaces; a wide character with the joined ones and the punctuation that stays with it;
# anything else up to the next place where a break is allowed
_WORD = re.compile(
    f" +|[{_OPENING}]*[{_WIDE}](?:[\u0300-\u036f\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff]"
    f"|\u200d.|(?<=[\U0001f1e6-\U0001f1ff])[\U0001f1e6-\U0001f1ff])*[{_CLOSING}]*"
    f"|[^ {_WIDE}]+"
)


class Row(NamedTuple):
    """A stretch of the text that fits one row."""

    start: int
    end: int
    joins: str | None


def rows(text: str, room: int) -> list[Row]:
    """Break ``text`` (newlines are hard breaks) into rows of at most ``room`` cells."""
    room = max(1, room)
    out: list[Row] = []
    at = 0
    for line in text.split("\n"):
        if line.isascii() and len(line) <= room:
            out.append(Row(at, at + len(line.rstrip(" ")), None))
        else:
            _break(line, at, room, out)
        at += len(line) + 1
    return out


def _break(line: str, at: int, room: int, out: list[Row]) -> None:
    """Add the rows of one line that starts at ``at`` in its text."""
    ascii_only = line.isascii()
    start = end = size = gap = 0  # the row so far: [start, end), its cells, spaces after it
    joins: str | None = None
    for match in (_ASCII_WORD if ascii_only else _WORD).finditer(line):
        word, place = match[0], match.start()
        if word[0] == " ":
            gap += len(word)
            continue
        cells = len(word) if ascii_only else width(word)
        if size + gap + cells <= room:
            end, size, gap = match.end(), size + gap + cells, 0
            continue
        if end > start:
            out.append(Row(at + start, at + end, joins))
            joins = " " if gap else ""
        start, end, size, gap = place, match.end(), cells, 0
        if cells > room:
            pieces = [piece for piece in chop(word, room, room) if piece]
            for piece in pieces[:-1]:
                out.append(Row(at + start, at + start + len(piece), joins))
                start, joins = start + len(piece), ""
            size = width(pieces[-1])
    out.append(Row(at + start, at + end, joins))


def wrap(spans: Sequence[Span], room: int) -> list[Line]:
    """Break styled text into lines of at most ``room`` cells; newlines are hard breaks."""
    text = "".join(span.text for span in spans)
    if len(spans) == 1:
        role, link = spans[0].role, spans[0].link
        return [
            Line((Span(text[row.start : row.end], role, link),), row.joins)
            for row in rows(text, room)
        ]
    return [Line(tuple(cut), row.joins) for row, cut in _slices(spans, rows(text, room))]


def _slices(spans: Sequence[Span], where: Iterable[Row]) -> Iterable[tuple[Row, list[Span]]]:
    index, at = 0, 0  # the span under the row's start, and where it starts in the text
    for row in where:
        while index < len(spans) and at + len(spans[index].text) <= row.start:
            at += len(spans[index].text)
            index += 1
        cut: list[Span] = []
        here, place = index, at
        while here < len(spans) and place < row.end:
            span = spans[here]
            piece = span.text[max(0, row.start - place) : row.end - place]
            if piece:
                cut.append(Span(piece, span.role, span.link))
            place += len(span.text)
            here += 1
        yield row, cut


def fold(spans: Sequence[Span], room: int) -> list[Line]:
    """Cut one line of code or output into rows of exactly ``room`` cells; spaces stay."""
    room = max(1, room)
    size = sum(width(span.text) for span in spans)
    if size <= room:
        return [Line(tuple(spans))]
    out: list[Line] = []
    row: list[Span] = []
    left = room
    for span in spans:
        pieces = chop(span.text, left, room)
        for number, piece in enumerate(pieces):
            if number:
                out.append(Line(tuple(row), "" if out else None))
                row, left = [], room
            if piece:
                row.append(Span(piece, span.role, span.link))
                left -= width(piece)
    out.append(Line(tuple(row), "" if out else None))
    return out


def plain(text: str, room: int, role: str = "") -> list[Line]:
    """Break unstyled text, keeping its line breaks and the spaces inside its lines."""
    out: list[Line] = []
    for line in text.split("\n"):
        out += fold((Span(expand_tabs(line), role),), room) if line else [Line(())]
    return out
