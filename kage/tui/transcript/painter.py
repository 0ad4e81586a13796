"""Rows to strips: colours, the selection, and a bounded memory of what was painted."""

from __future__ import annotations

from collections import OrderedDict

from rich.segment import Segment
from textual.selection import Selection
from textual.strip import Strip

from kage.tui.transcript.excerpt import order
from kage.tui.transcript.line import Line
from kage.tui.transcript.palette import Palette, highlighted
from kage.tui.transcript.pieces import ToolPiece
from kage.tui.transcript.rowmap import Row

KEPT_STRIPS = 3_000


class Painter:
    """Paints rows at one width in one theme."""

    def __init__(self, palette: Palette, width: int) -> None:
        self.palette = palette
        self.width = width
        self._strips: OrderedDict[tuple[int, int, int], Strip] = OrderedDict()

    def paint(self, row: Row | None, selection: Selection | None, frame: int | None) -> Strip:
        """Give the strip of a row.

        Args:
            row: The row, None past the end.
            selection: What is selected, by ``excerpt.order``.
            frame: Picture of the spinners, None for still ones.
        """
        if row is None:
            return Strip.blank(self.width, self.palette.base)
        number = order(row.block, row.number, row.at)
        if row.at == 0 and isinstance(row.piece, ToolPiece) and row.piece.moving:
            return self._strip(row.piece.at(self.width, frame), number, selection)
        if selection is not None:
            return self._strip(row.line, number, selection)
        key = (row.piece.serial, row.at, number)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._strips[key] = self._strip(row.line, number, None)
            if len(self._strips) > KEPT_STRIPS:
                self._strips.popitem(last=False)
        else:
            self._strips.move_to_end(key)
        return strip

    def _strip(self, line: Line, number: int, selection: Selection | None) -> Strip:
        if selection is not None and (span := selection.get_span(number)) is not None:
            line = highlighted(line, *span)
        segments, size = self.palette.segments(line, self.width)
        if not line.spans:  # an empty row is a place for the pointer, too
            segments.insert(0, Segment("", self.palette.base))
        strip = Strip(segments, size)
        if size > self.width:  # a wide character in a view of one column
            strip = strip.crop(0, self.width)
        return strip.apply_offsets(0, number)
