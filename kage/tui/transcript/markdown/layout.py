"""Lay parsed markdown out as rows of a given width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from kage.tui.transcript.line import EMPTY, Line, Span, hang, indent
from kage.tui.transcript.markdown.highlight import colour, colour_line
from kage.tui.transcript.markdown.nodes import (
    Code,
    Heading,
    Items,
    Node,
    Paragraph,
    Quote,
    Rule,
    Table,
)
from kage.tui.transcript.markdown.table import table_lines
from kage.tui.transcript.wrap import fold, wrap

_BULLETS = "•◦▪"
_NARROW = 8  # cells under which decoration gives way to text


def lay_out(nodes: Sequence[Node], room: int, *, live: bool = False, depth: int = 0) -> list[Line]:
    """Give the rows of ``nodes`` at ``room`` cells, one blank row between two of them.

    ``live`` nodes may still grow: their code is coloured line by line.
    """
    out: list[Line] = []
    for node in nodes:
        if out:
            out.append(EMPTY)
        out += _node(node, max(1, room), live=live, depth=depth)
    return out


def _node(node: Node, room: int, *, live: bool, depth: int) -> list[Line]:
    match node:
        case Paragraph():
            return wrap(node.spans, room)
        case Heading():
            return _heading(node, room)
        case Code():
            return code_lines(node.text, node.info, room, live=live)
        case Quote():
            bar = Span("▎ ", "~bar")
            if room < _NARROW:
                return lay_out(node.children, room, live=live, depth=depth)
            inner = lay_out(node.children, room - 2, live=live, depth=depth)
            return [_quoted(line) for line in indent(inner, bar)]
        case Items():
            return _items(node, room, live=live, depth=depth)
        case Table():
            return table_lines(node, room)
        case Rule():
            return [Line((Span("─" * min(room, 40), "rule"),))]
        case _:
            assert_never(node)


def _heading(node: Heading, room: int) -> list[Line]:
    role = "heading" if node.level <= 2 else "subheading"
    spans = [
        span._replace(role=f"{role}.{span.role}" if span.role else role) for span in node.spans
    ]
    return wrap(spans, room)


def _quoted(line: Line) -> Line:
    return line._replace(
        spans=tuple(
            span if span.role.startswith("~") else span._replace(role=f"quote.{span.role}")
            for span in line.spans
        )
    )


def _items(node: Items, room: int, *, live: bool, depth: int) -> list[Line]:
    out: list[Line] = []
    last = (node.start or 0) + len(node.items) - 1
    for number, item in enumerate(node.items):
        if out and not node.tight:
            out.append(EMPTY)
        if node.start is None:
            mark = f"{_BULLETS[depth % len(_BULLETS)]} "
        else:
            mark = f"{node.start + number}{node.mark or '.'} ".rjust(len(str(last)) + 2)
        if room - len(mark) < _NARROW // 2:
            mark = ""
        inner = _tight(item, room - len(mark), live=live, depth=depth + 1, tight=node.tight)
        pad = (Span(" " * len(mark), "~pad"),) if mark else ()
        out += hang(inner or [EMPTY], (Span(mark, "bullet"),) if mark else (), pad)
    return out


def _tight(item: Sequence[Node], room: int, *, live: bool, depth: int, tight: bool) -> list[Line]:
    """Lay out an item; in a tight one a nested list follows without a blank row."""
    out: list[Line] = []
    for node in item:
        if out and not (tight and isinstance(node, Items | Paragraph)):
            out.append(EMPTY)
        out += _node(node, max(1, room), live=live, depth=depth)
    return out


def code_lines(text: str, info: str, room: int, *, live: bool = False) -> list[Line]:
    """Give the rows of code behind a bar; long lines are cut, not wrapped at words."""
    lines = tuple(text.split("\n"))
    coloured = [colour_line(line, info) for line in lines] if live else colour(lines, info)
    bar = Span("│ ", "~codebar") if room >= _NARROW else Span("", "~codebar")
    out: list[Line] = []
    for spans in coloured:
        out += indent(fold(spans, room - len(bar.text)) if spans else [EMPTY], bar)
    return out
