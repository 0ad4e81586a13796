"""Which row shows which piece: heights of everything, exact where it was looked at.

What was never looked at has an estimated height. A place is (block, piece, row in the piece), so
that late exactness, folding and resizing do not move what a person reads.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from kage.tui.transcript.blocks import Block
from kage.tui.transcript.heights import Heights
from kage.tui.transcript.line import EMPTY, Line
from kage.tui.transcript.model import TranscriptModel
from kage.tui.transcript.pieces import Piece

_KEPT_ROWS = 8_000  # of laid out pieces


class Anchor(NamedTuple):
    """A row that keeps its meaning while rows above it come and go."""

    block: str
    piece: int
    row: int


class Row(NamedTuple):
    """What one row of the screen shows."""

    line: Line
    piece: Piece
    at: int  # row in the piece, its gap not counted; negative in the gap
    block: int
    number: int  # of the piece in the block


class Inexact(NamedTuple):
    """A piece whose height is a guess."""

    block: int
    piece: int


class _Inside:
    """The heights of one block's pieces."""

    __slots__ = ("epoch", "exact", "heights", "pieces", "stable")

    def __init__(self, block: Block, width: int) -> None:
        self.pieces = list(block.pieces())
        self.epoch, self.stable = block.epoch, block.stable
        self.heights = Heights(_guess(piece, width) for piece in self.pieces)
        self.exact = bytearray(len(self.pieces))

    def follow(self, block: Block, width: int) -> bool:
        """Take over what changed at the end; False when all of it is new."""
        now = block.pieces()
        if block.epoch != self.epoch:
            return False
        keep = min(self.stable, len(now))
        while keep < min(len(now), len(self.pieces)) and now[keep] is self.pieces[keep]:
            keep += 1
        while len(self.pieces) > keep:
            self.pieces.pop()
            self.heights.pop()
            self.exact.pop()
        for piece in now[keep:]:
            self.pieces.append(piece)
            self.heights.append(_guess(piece, width))
            self.exact.append(0)
        self.stable = block.stable
        return True


def _guess(piece: Piece, width: int) -> int:
    return piece.gap + piece.estimate(width)


class RowMap:
    """Rows of a model at one width."""

    def __init__(self, model: TranscriptModel, width: int = 80) -> None:
        self.model = model
        self.width = width
        self._list: list[Block] = []  # as it was when ``sync`` last looked
        self._where: dict[str, int] = {}
        self._blocks = Heights()
        self._inside: dict[str, _Inside] = {}
        self._lines: OrderedDict[int, list[Line]] = OrderedDict()  # by a piece's serial
        self._kept = 0
        self._rebuild()

    @property
    def total(self) -> int:
        """Rows of everything."""
        return self._blocks.total

    def resize(self, width: int) -> None:
        """Lay out for another width from now on; costs nothing but new estimates."""
        if width != self.width:
            self.width = width
            self._forget_lines()
            self._rebuild()

    def sync(self) -> bool:
        """Follow the model; say if anything changed."""
        changes = self.model.feed.take()
        if changes.rebuilt:
            self._rebuild()
            return True
        for block_id in changes.touched:
            self._follow(block_id)
        return bool(changes.touched)

    # -- places

    def block(self, at: int) -> Block:
        """Give the block at a place."""
        return self._list[at]

    def holds(self, anchor: Anchor) -> bool:
        """Say whether the anchor's block is still there."""
        return anchor.block in self._where

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return len(self._list)

    def anchor(self, row: int) -> Anchor | None:
        """Give the anchor of a row, None when there is nothing."""
        if not len(self._blocks):
            return None
        row = max(0, min(row, self.total - 1))
        at, rest = self._blocks.find(row)
        if at >= len(self._blocks):
            return None
        inside = self._open(at)
        piece, rest = inside.heights.find(rest)
        if piece >= len(inside.pieces):  # the estimate was too high
            piece = len(inside.pieces) - 1
            rest = 0
        return Anchor(self._list[at].id, max(0, piece), max(0, rest))

    def row(self, anchor: Anchor) -> int:
        """Give the row where an anchor is now; what is gone gives the nearest that is left."""
        at = self._where.get(anchor.block)
        if at is None:
            return 0
        inside = self._open(at)
        piece = min(anchor.piece, len(inside.pieces))
        top = self._blocks.before(at) + inside.heights.before(piece)
        if piece == len(inside.pieces):
            return top
        return top + min(anchor.row, max(0, inside.heights[piece] - 1))

    def extent(self, block_id: str, reach: int) -> tuple[int, int]:
        """Give the first row of a block and the one behind its last, exact up to ``reach`` rows."""
        at = self._where.get(block_id)
        if at is None:
            return 0, 0
        self.settle_down(Anchor(block_id, 0, 0), reach)
        top = self._blocks.before(at)
        return top, top + self._blocks[at]

    # -- exactness

    def settle_down(self, anchor: Anchor, rows: int) -> None:
        """Make the pieces from the anchor's on exact, until ``rows`` rows are."""
        at = self._where.get(anchor.block)
        piece, rows = anchor.piece, rows + anchor.row
        while at is not None and at < len(self._blocks) and rows > 0:
            inside = self._open(at)
            while piece < len(inside.pieces) and rows > 0:
                rows -= self._measure(at, inside, piece)
                piece += 1
            at, piece = at + 1, 0

    def settle_up(self, anchor: Anchor | None, rows: int) -> None:
        """Make the pieces above the anchor's exact, or above the end when it is None."""
        if anchor is None:
            at, piece = len(self._blocks), 0
        else:
            found = self._where.get(anchor.block)
            at, piece = (0, 0) if found is None else (found, anchor.piece)
        while rows > 0:
            if piece == 0:
                at -= 1
                if at < 0:
                    return
                piece = len(self._open(at).pieces)
                continue
            piece -= 1
            inside = self._open(at)
            if piece < len(inside.pieces):
                rows -= self._measure(at, inside, piece)

    def nearby(self, anchor: Anchor | None, reach: int) -> Iterator[Inexact]:
        """Give the estimated pieces within ``reach`` rows of the anchor (None: of the end).

        Nearest first, below before above; to be thrown away when the model changed.
        """
        start = self.anchor(self.total - 1) if anchor is None else anchor
        at = self._where.get(start.block) if start else None
        if start is not None and at is not None:
            yield from self._below(at, start.piece, reach)
            yield from self._above(at, start.piece, reach)

    def make_exact(self, found: Inexact) -> None:
        """Lay out a piece that ``nearby`` named."""
        inside = self._open(found.block)
        if found.piece < len(inside.pieces):
            self._measure(found.block, inside, found.piece)

    # -- rows

    def at(self, row: int) -> Row | None:
        """Give what a row shows, None past the end; makes the piece exact."""
        for _ in range(3):  # a piece that turns out shorter can push the row into the next
            if row < 0 or row >= self.total:
                return None
            at, rest = self._blocks.find(row)
            inside = self._open(at)
            number, rest = inside.heights.find(rest)
            if number >= len(inside.pieces):
                continue
            self._measure(at, inside, number)
            piece = inside.pieces[number]
            if rest < piece.gap:
                return Row(EMPTY, piece, rest - piece.gap, at, number)
            lines = self.lines(piece)
            if rest - piece.gap < len(lines):
                return Row(lines[rest - piece.gap], piece, rest - piece.gap, at, number)
        return None

    def lines(self, piece: Piece) -> list[Line]:
        """Give a piece's rows, from memory if they are there."""
        found = self._lines.get(piece.serial)
        if found is not None:
            self._lines.move_to_end(piece.serial)
            return found
        made = piece.lines(self.width)
        self._lines[piece.serial] = made
        self._kept += len(made) + 1
        while self._kept > _KEPT_ROWS and len(self._lines) > 1:
            _, old = self._lines.popitem(last=False)
            self._kept -= len(old) + 1
        return made

    def pieces(self, at: int) -> list[Piece]:
        """Give the pieces of the block at a place."""
        return self._open(at).pieces

    # -- inside

    def _rebuild(self) -> None:
        self.model.feed.take()
        self._inside.clear()
        self._list = list(self.model.blocks)
        self._where = {block.id: at for at, block in enumerate(self._list)}
        self._blocks = Heights(block.estimate(self.width) for block in self._list)

    def _forget_lines(self) -> None:
        self._lines.clear()
        self._kept = 0

    def _follow(self, block_id: str) -> None:
        at = self.model.index(block_id)
        if at is None:
            return
        blocks = self.model.blocks
        for block in blocks[len(self._list) : at + 1]:
            self._where[block.id] = len(self._list)
            self._list.append(block)
            self._blocks.append(block.estimate(self.width))
        block = self._list[at] = blocks[at]
        inside = self._inside.get(block_id)
        if inside is None:
            self._blocks.set(at, block.estimate(self.width))
            return
        if not inside.follow(block, self.width):
            inside = self._inside[block_id] = _Inside(block, self.width)
        self._blocks.set(at, inside.heights.total)

    def _open(self, at: int) -> _Inside:
        """Give the heights inside a block, made now if nobody looked yet."""
        block = self._list[at]
        inside = self._inside.get(block.id)
        if inside is None:
            inside = self._inside[block.id] = _Inside(block, self.width)
            self._blocks.set(at, inside.heights.total)
        return inside

    def _measure(self, at: int, inside: _Inside, number: int) -> int:
        """Make a piece's height exact and give it."""
        if not inside.exact[number]:
            piece = inside.pieces[number]
            rows = len(self.lines(piece))
            inside.heights.set(number, rows + piece.gap if rows else 0)
            inside.exact[number] = 1
            self._blocks.set(at, inside.heights.total)
        return inside.heights[number]

    def _below(self, at: int, piece: int, reach: int) -> Iterator[Inexact]:
        while reach > 0 and at < len(self._blocks):
            inside = self._open(at)
            while reach > 0 and piece < len(inside.pieces):
                if not inside.exact[piece]:
                    yield Inexact(at, piece)
                reach -= inside.heights[piece]
                piece += 1
            at, piece = at + 1, 0

    def _above(self, at: int, piece: int, reach: int) -> Iterator[Inexact]:
        while reach > 0 and at >= 0:
            inside = self._open(at)
            piece = min(piece, len(inside.pieces))
            while reach > 0 and piece > 0:
                piece -= 1
                if not inside.exact[piece]:
                    yield Inexact(at, piece)
                reach -= inside.heights[piece]
            at, piece = at - 1, sys.maxsize
