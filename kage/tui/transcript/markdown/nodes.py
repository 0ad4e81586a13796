"""Parsed markdown: what a block is, before anyone knows how wide the screen is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kage.tui.transcript.line import Span

Inline = tuple[Span, ...]
Align = Literal["left", "center", "right"]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    spans: Inline


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 to 6."""

    level: int
    spans: Inline


@dataclass(frozen=True, slots=True)
class Code:
    """A fence or indented code; ``info`` is the fence's language line."""

    text: str
    info: str = ""


@dataclass(frozen=True, slots=True)
class Quote:
    """A block quote."""

    children: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A list; ``start`` is None for bullets. ``tight`` items stand without blank rows."""

    items: tuple[tuple[Node, ...], ...]
    start: int | None
    tight: bool
    mark: str = ""  # "." or ")" behind a number


@dataclass(frozen=True, slots=True)
class Table:
    """A table; every row has as many cells as there are alignments."""

    aligns: tuple[Align, ...]
    header: tuple[Inline, ...]
    rows: tuple[tuple[Inline, ...], ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A thematic break."""


Node = Paragraph | Heading | Code | Quote | Items | Table | Rule
