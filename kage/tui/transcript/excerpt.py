"""The text of a selection: source text where a whole piece is selected, unwrapped lines elsewhere.

A selected point is (order, character), the order being one number for (block, piece, row), so that
it stays right while rows above it come and go.
"""

from __future__ import annotations

from kage.tui.transcript.line import Line, Span, logical
from kage.tui.transcript.rowmap import RowMap

_ROWS, _PIECES = 24, 24  # bits
_SHIFT = 256  # rows in a gap count backwards from here
Point = tuple[int, int]  # order, character


def order(block: int, piece: int, row: int) -> int:
    """Give the number of a row: larger further down, whatever is known about heights."""
    return (((block << _PIECES) | piece) << _ROWS) | (row + _SHIFT)


def place(number: int) -> tuple[int, int, int]:
    """Give back (block, piece, row in the piece)."""
    rest, row = number >> _ROWS, (number & ((1 << _ROWS) - 1)) - _SHIFT
    return rest >> _PIECES, rest & ((1 << _PIECES) - 1), row


def excerpt(rows: RowMap, start: Point | None, end: Point | None) -> str:
    """Give the text between two points; None is the start or the end of everything."""
    first = place(start[0]) if start else (0, 0, -_SHIFT)
    last = place(end[0]) if end else (rows.count - 1, 1 << _PIECES, 0)
    texts: list[str] = []
    for at in range(max(0, first[0]), min(last[0], rows.count - 1) + 1):
        if first[0] < at < last[0] or (start is None and end is None):
            if text := rows.block(at).plain():
                texts.append(text)
            continue
        parts: list[str] = []
        for number, piece in enumerate(rows.pieces(at)):
            here = (at, number)
            if here < first[:2] or here > last[:2]:
                continue
            lines = rows.lines(piece)
            low = first[2] if start and here == first[:2] else -_SHIFT
            high = last[2] if end and here == last[:2] else len(lines)
            from_char = start[1] if start and low >= 0 else 0
            to_char = end[1] if end and high < len(lines) else -1
            whole = low <= 0 and from_char <= _lead(lines) and _ends(lines, high, to_char)
            if whole and lines:
                text = piece.copied(rows.width)
            else:
                text = logical(_cut(lines, low, from_char, high, to_char))
            if lines and (text or high >= 0):
                parts.append("\n" * min(1, piece.gap) + text if parts else text)
        if parts:
            texts.append("\n".join(parts))
    return "\n".join(texts)


def _lead(lines: list[Line]) -> int:
    """Give how many characters of decoration the first row starts with."""
    if not lines:
        return 0
    size = 0
    for span in lines[0].spans:
        if not span.role.startswith("~"):
            break
        size += len(span.text)
    return size


def _ends(lines: list[Line], high: int, to_char: int) -> bool:
    if high >= len(lines):
        return True
    return high == len(lines) - 1 and (to_char < 0 or to_char >= len(lines[-1].text))


def _cut(lines: list[Line], low: int, from_char: int, high: int, to_char: int) -> list[Line]:
    """Give the rows from (low, from_char) to (high, to_char), the last row included."""
    out: list[Line] = []
    for row in range(max(0, low), min(high, len(lines) - 1) + 1):
        line = lines[row]
        begin = from_char if row == low else 0
        stop = to_char if row == high and to_char >= 0 else len(line.text)
        out.append(_within(line, begin, stop))
    return out


def _within(line: Line, start: int, end: int) -> Line:
    spans: list[Span] = []
    at = 0
    for span in line.spans:
        text = span.text[max(0, start - at) : max(0, end - at)]
        at += len(span.text)
        if text:
            spans.append(span._replace(text=text))
    return line._replace(spans=tuple(spans))
