"""The pieces a block is drawn from: each lays itself out for a width, and never changes.

A long reply is thousands of pieces; only those on screen are ever laid out.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Literal

from kage.core.sanitise import visible
from kage.tui.transcript.cells import expand_tabs
from kage.tui.transcript.line import EMPTY, Line, Span, indent, logical
from kage.tui.transcript.markdown.layout import code_lines, lay_out
from kage.tui.transcript.markdown.nodes import Node
from kage.tui.transcript.markdown.splitter import Chunk, Kind
from kage.tui.transcript.rows import ToolRow, tool_line
from kage.tui.transcript.wrap import fold, plain, wrap

_serials = itertools.count(1)
Style = Literal["words", "cells", "diff"]


def margin(width: int) -> int:
    """Give the cells left of every body at a screen of ``width`` cells."""
    return 3 if width >= 40 else 1 if width >= 12 else 0


def room(width: int) -> int:
    """Give the cells a body has at a screen of ``width`` cells."""
    return max(1, width - margin(width) - (1 if width >= 12 else 0))


class Piece(ABC):
    """Some rows of a block, with ``gap`` blank rows in front of them."""

    __slots__ = ("gap", "serial")
    moving = False  # its first row changes with time

    def __init__(self, gap: int) -> None:
        self.gap = gap
        self.serial = next(_serials)  # names this very content, for caches

    @abstractmethod
    def lines(self, width: int) -> list[Line]:
        """Lay the piece out; no rows at all also drops the gap."""

    def estimate(self, width: int) -> int:
        """Guess how many rows ``lines`` gives."""
        return 1

    def copied(self, width: int) -> str:
        """Give the source a person wants when all of it is selected."""
        return logical(self.lines(width))


class RowsPiece(Piece):
    """A few rows made by a function of the room."""

    __slots__ = ("_bleeds", "_make", "_target")

    def __init__(
        self,
        make: Callable[[int], Sequence[Line]],
        *,
        gap: int = 0,
        target: str = "",
        bleeds: bool = False,
    ) -> None:
        super().__init__(gap)
        self._make = make
        self._target = target
        self._bleeds = bleeds  # drawn into the margin

    def lines(self, width: int) -> list[Line]:
        """See Piece."""
        left = margin(width)
        if self._bleeds and left:
            made = self._make(room(width) + left - left // 2)
            made = indent(made, Span(" " * (left // 2), "~pad"))
        else:
            made = _body(self._make(room(width)), width)
        return [line._replace(target=self._target) for line in made] if self._target else list(made)


class ToolPiece(Piece):
    """The row of a call; while the call runs, its spinner and clock move."""

    __slots__ = ("_depth", "_marker", "moving", "row", "target")

    def __init__(self, row: ToolRow, *, marker: str, target: str, depth: int = 0) -> None:
        super().__init__(0)
        self.row = row
        self.moving = not row.over
        self.target = target
        self._marker = marker
        self._depth = depth

    def lines(self, width: int) -> list[Line]:
        """See Piece."""
        return [self.at(width, None)]

    def at(self, width: int, frame: int | None) -> Line:
        """Give the row at this moment, with the spinner's picture number ``frame``."""
        depth = self._depth if width >= 40 else 0
        line = tool_line(self.row, room(width) - depth, marker=self._marker, frame=frame)
        pad = Span(" " * (margin(width) + depth), "~pad")
        return line._replace(spans=(pad, *line.spans), target=self.target)


class TextPiece(Piece):
    """Unformatted text: what a person typed, thoughts, results, output, diffs."""

    __slots__ = ("_bar", "_role", "_style", "text")

    def __init__(
        self, text: str, *, style: Style, role: str = "", bar: str = "", gap: int = 0
    ) -> None:
        super().__init__(gap)
        self.text = text
        self._style = style
        self._role = role
        self._bar = bar

    def lines(self, width: int) -> list[Line]:
        """See Piece."""
        bar = self._bar if room(width) > len(self._bar) + 6 else ""
        space = room(width) - len(bar)
        if self._style == "words":
            made = wrap((Span(self.text.replace("\t", "    "), self._role),), space)
        elif self._style == "diff":
            made = _diff(self.text, space)
        else:
            made = plain(self.text, space, self._role)
        if bar:
            made = indent(made, Span(bar, "~bar"))
        return _body(made, width)

    def estimate(self, width: int) -> int:
        """See Piece."""
        return guess(self.text, room(width))

    def copied(self, width: int) -> str:
        """See Piece."""
        return self.text


class MarkdownPiece(Piece):
    """One chunk of a reply."""

    __slots__ = ("_live", "_references", "chunk")

    def __init__(
        self, chunk: Chunk, *, gap: int, live: bool, references: dict[str, Any] | None = None
    ) -> None:
        super().__init__(gap)
        self.chunk = chunk
        self._live = live
        self._references = references

    def lines(self, width: int) -> list[Line]:
        """See Piece."""
        chunk = self.chunk
        space = max(1, room(width) - chunk.margin)
        try:
            made = self._drawn(space)
        except Exception:  # a parser or lexer that fails on a stranger's text must not end the
            made = plain(visible(chunk.text), space)  # chat: the text is shown as it came
        if chunk.glued and made:
            made[0] = made[0]._replace(joins="")
        if chunk.margin and room(width) > chunk.margin * 2:
            made = indent(made, Span(" " * chunk.margin, "~pad"))
        return _body(made, width)

    def _drawn(self, space: int) -> list[Line]:
        chunk = self.chunk
        if chunk.kind is Kind.FENCE:
            return code_lines(chunk.text, chunk.info, space, live=self._live)
        return lay_out(self._nodes(), space, live=self._live)

    def same(self, other: MarkdownPiece) -> bool:
        """Say whether ``other`` gives the same rows at every width."""
        return (self.chunk, self.gap, self._live, self._references) == (
            other.chunk,
            other.gap,
            other._live,
            other._references,
        )

    def _nodes(self) -> tuple[Node, ...]:
        from kage.tui.transcript.markdown.parse import parse  # after the first frame

        if self._references:
            return parse(self.chunk.text, dict(self._references))
        return _parsed(self.chunk.text)

    def estimate(self, width: int) -> int:
        """See Piece."""
        return guess(self.chunk.text, room(width))

    def copied(self, width: int) -> str:
        """See Piece."""
        return self.chunk.text


@lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[Node, ...]:
    from kage.tui.transcript.markdown.parse import parse

    return parse(text)


def guess(text: str, space: int) -> int:
    """Guess the rows of ``text`` without wrapping it."""
    return max(1, text.count("\n") + 1 + len(text) // (space + 1) - text.count("\n") // 2)


def _body(lines: Sequence[Line], width: int) -> list[Line]:
    left = margin(width)
    return indent(lines, Span(" " * left, "~pad")) if left else list(lines)


def _diff(text: str, space: int) -> list[Line]:
    out: list[Line] = []
    for line in text.split("\n"):
        if line.startswith("@@"):
            role = "hunk"
        elif line.startswith(("+++", "---")):
            role = "detail"
        elif line.startswith("+"):
            role = "added"
        elif line.startswith("-"):
            role = "removed"
        else:
            role = "context"
        out += fold((Span(expand_tabs(line), role),), space) if line else [EMPTY]
    return out


def text_pieces(
    text: str, *, style: Style, role: str = "", bar: str = "", gap: int = 0
) -> list[TextPiece]:
    """Cut a text into pieces small enough to lay out in no time."""
    return [
        TextPiece(part, style=style, role=role, bar=bar, gap=0 if number else gap)
        for number, part in enumerate(portions(text))
    ]


def portions(text: str, lines: int = 60, size: int = 8_000) -> list[str]:
    """Cut ``text`` at line ends into portions of at most ``lines`` lines and ``size`` characters.

    A single line longer than ``size`` is cut inside.
    """
    out: list[str] = []
    current: list[str] = []
    length = 0
    for line in text.split("\n"):
        for at in range(0, max(1, len(line)), size):
            part = line[at : at + size]
            if current and (len(current) >= lines or length + len(part) > size):
                out.append("\n".join(current))
                current, length = [], 0
            current.append(part)
            length += len(part) + 1
    out.append("\n".join(current))
    return out
