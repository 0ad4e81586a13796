"""Lay a table out: columns as wide as they need, shrunk fairly where the screen is too narrow."""

from __future__ import annotations

from kage.tui.transcript.cells import width
from kage.tui.transcript.line import EMPTY, Line, Span
from kage.tui.transcript.markdown.nodes import Align, Inline, Table
from kage.tui.transcript.wrap import wrap

_GAP = 3  # cells between two columns: " │ "
_LEAST = 3  # cells under which a table is drawn as a list instead


def table_lines(table: Table, room: int) -> list[Line]:
    """Give the rows of ``table`` at ``room`` cells."""
    count = len(table.aligns)
    if not count:
        return []
    available = room - _GAP * (count - 1)
    if available < count * _LEAST:
        return _as_list(table, room)
    widths = fit(_natural(table), available)
    out = _row(tuple(_strong(cell) for cell in table.header), table.aligns, widths)
    out.append(Line((Span("─┼─".join("─" * size for size in widths), "~rule"),)))
    for row in table.rows:
        out += _row(row, table.aligns, widths)
    return out


def fit(wanted: list[int], room: int) -> list[int]:
    """Give each column what it wants, or share ``room`` so that the widest give way first."""
    if sum(wanted) <= room:
        return wanted
    fitted = [0] * len(wanted)
    left = sorted(range(len(wanted)), key=lambda column: wanted[column])
    while left:
        share = room // len(left)
        if wanted[left[0]] <= share:
            column = left.pop(0)
            fitted[column] = wanted[column]
            room -= wanted[column]
            continue
        extra = room - share * len(left)
        for place, column in enumerate(left):
            fitted[column] = share + (place < extra)
        break
    return fitted


def _natural(table: Table) -> list[int]:
    return [
        max(1, *(_cells(row[column]) for row in (table.header, *table.rows)))
        for column in range(len(table.aligns))
    ]


def _cells(cell: Inline) -> int:
    text = "".join(span.text for span in cell)
    return max(width(line) for line in text.split("\n"))


def _strong(cell: Inline) -> Inline:
    return tuple(
        span._replace(role=f"strong.{span.role}" if span.role else "strong") for span in cell
    )


def _row(cells: tuple[Inline, ...], aligns: tuple[Align, ...], widths: list[int]) -> list[Line]:
    wrapped = [wrap(cell, size) for cell, size in zip(cells, widths, strict=True)]
    height = max(len(lines) for lines in wrapped)
    out: list[Line] = []
    for number in range(height):
        spans: list[Span] = []
        for column, lines in enumerate(wrapped):
            if column:
                spans.append(Span(" │ ", "rule"))
            line = lines[number] if number < len(lines) else EMPTY
            spans += _aligned(line, aligns[column], widths[column])
        out.append(Line(tuple(spans)))
    return out


def _aligned(line: Line, align: Align, size: int) -> list[Span]:
    gap = max(0, size - sum(width(span.text) for span in line.spans))
    before = gap if align == "right" else gap // 2 if align == "center" else 0
    out = [Span(" " * before)] if before else []
    out += line.spans
    if gap > before:
        out.append(Span(" " * (gap - before)))
    return out


def _as_list(table: Table, room: int) -> list[Line]:
    """Draw a table that does not fit as one short list per row."""
    out: list[Line] = []
    for row in table.rows or (table.header,):
        if out:
            out.append(EMPTY)
        for name, cell in zip(table.header, row, strict=True):
            label = (*_strong(name), Span(": ")) if table.rows else ()
            out += wrap((*label, *cell), room)
    return out
