"""What a drawn row is made of, before it has colours: spans with a role, and what a click does.

A role is a dotted list of words ("strong.link"); the palette turns it into a style. A role that
starts with ``~`` is decoration (margins, bars, borders) and is never copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kage.tui.transcript.cells import width


class Span(NamedTuple):
    """A run of text in one style; holds no newline and no tab once it stands in a line."""

    text: str
    role: str = ""
    link: str = ""  # address a click opens, "" for none


class Line(NamedTuple):
    """One row.

    ``joins`` is None when the row starts a line of the source, else what stood between the row
    above and this one: a space where a paragraph was wrapped, "" where a long word was cut.
    """

    spans: tuple[Span, ...]
    joins: str | None = None
    target: str = ""  # block id whose fold a click on the row's marker toggles
    right: tuple[Span, ...] = ()  # drawn at the right edge
    fill: str = ""  # role of the whole row, for backgrounds

    @property
    def text(self) -> str:
        """The row as it is drawn, without colours and without what stands at the right."""
        return "".join(span.text for span in self.spans)

    @property
    def content(self) -> str:
        """The row without decoration, for copying."""
        return "".join(span.text for span in self.spans if not span.role.startswith("~"))

    def link_at(self, column: int) -> str:
        """Give the address under a cell of the row, "" for none."""
        at = 0
        for span in self.spans:
            at += width(span.text)
            if column < at:
                return span.link
        return ""


EMPTY = Line(())


def indent(lines: Iterable[Line], prefix: Span) -> list[Line]:
    """Put ``prefix`` in front of every line."""
    return [line._replace(spans=(prefix, *line.spans)) for line in lines]


def hang(lines: list[Line], first: tuple[Span, ...], rest: tuple[Span, ...]) -> list[Line]:
    """Put ``first`` in front of the first line and ``rest`` in front of the others."""
    return [
        line._replace(spans=((rest if index else first) + line.spans))
        for index, line in enumerate(lines)
    ]


def logical(lines: Iterable[Line]) -> str:
    """Join rows back to the lines they were wrapped from."""
    out: list[str] = []
    for line in lines:
        if line.joins is None or not out:
            out.append(line.content)
        else:
            out[-1] = f"{out[-1]}{line.joins}{line.content}"
    return "\n".join(out)
