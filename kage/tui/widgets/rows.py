"""Rows of styled text, folded to a width, and the view that draws any number of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a row; ``kind`` names a component class of ``RowsView``, "" the plain text."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line before folding; ``hang`` is put in front of each line it is folded into.

    With ``words`` it is folded between words where that is possible; else every character keeps
    its place, as values of arguments must.
    """

    spans: tuple[Span, ...]
    hang: str = ""
    words: bool = False


Rows = tuple[Row, ...]
Line = tuple[Span, ...]


def row(*spans: Span | str, hang: str = "", words: bool = False) -> Row:
    """Make a row out of spans and plain texts; the texts are already safe to show."""
    made = tuple(Span(span) if isinstance(span, str) else span for span in spans)
    return Row(spans=made, hang=hang, words=words)


def fold(rows: Iterable[Row], width: int) -> Iterator[Line]:
    """Fold ``rows`` into lines of at most ``width`` cells; nothing is cut off."""
    width = max(2, width)
    for item in rows:
        yield from _fold_row(item, width)


def _fold_row(item: Row, width: int) -> Iterator[Line]:
    hang = item.hang if cell_len(item.hang) < width - 4 else ""
    line: list[Span] = []
    used = 0
    for span in item.spans:
        rest = span.text
        while rest:
            room = width - used
            size = cell_len(rest)
            if size <= room:
                line.append(Span(rest, span.kind))
                used += size
                break
            head = chop_cells(rest, room)[0] if room > 0 and size <= 4096 else _head(rest, room)
            if item.words:
                head = _whole_words(head, rest, fresh=used <= cell_len(hang))
            if head:
                line.append(Span(head, span.kind))
                rest = rest[len(head) :]
            elif used <= cell_len(hang):  # a wide character in a single column
                rest = rest[1:]
                continue
            yield tuple(line)
            line = [Span(hang)] if hang else []
            used = cell_len(hang)
    yield tuple(line)


def _whole_words(head: str, rest: str, *, fresh: bool) -> str:
    """Cut ``head`` back to the last word that is whole; a line of its own takes a broken one."""
    if rest[len(head) : len(head) + 1] in ("", " "):
        return head
    end = head.rfind(" ") + 1
    return head[:end] if end or not fresh else head


def _head(text: str, room: int) -> str:
    """Give as much of the start of ``text`` as fits, without measuring all of it."""
    if room <= 0:
        return ""
    start = text[:room]
    return start if cell_len(start) <= room else chop_cells(start, room)[0]


class RowsView(ScrollView, can_focus=False):
    """Draws rows line by line; a megabyte of text costs no more to scroll than a screen of it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--key",
        "rows--muted",
        "rows--added",
        "rows--removed",
        "rows--hunk",
        "rows--warning",
        "rows--error",
        "rows--good",
        "rows--strong",
    }

    def __init__(self, *, id: str | None = None, most: int = 0) -> None:
        super().__init__(id=id)
        self._rows: Rows = ()
        self._lines: list[Line] = []
        self._folded_at = -1
        self._height = 0  # lines it gave itself
        self._most = most  # lines of height when it sizes itself; 0: the style sheet decides

    def show(self, rows: Rows, *, keep_place: bool = False) -> None:
        """Draw ``rows``, from their start unless ``keep_place``."""
        self._rows = rows
        self._folded_at = -1
        self._refold()
        if not keep_place:
            self.scroll_to(0, 0, animate=False)

    @property
    def text(self) -> str:
        """Everything that can be scrolled to, as text."""
        return "\n".join("".join(span.text for span in item.spans) for item in self._rows)

    @property
    def line_count(self) -> int:
        """Lines at the current width."""
        return len(self._lines)

    def limit(self, most: int) -> None:
        """Grow with the content up to ``most`` lines."""
        self._most = most
        self._size_to_content()

    def on_resize(self, event: events.Resize) -> None:
        """Fold again when the width changed."""
        self._refold()

    def _refold(self) -> None:
        # the place of the scroll bar stays free, so that its coming and going folds nothing anew
        width = self.outer_size.width - self.styles.scrollbar_size_vertical
        if width <= 0:
            return
        if width != self._folded_at:
            self._lines = list(fold(self._rows, width))
            self._folded_at = width
            self.virtual_size = Size(width, len(self._lines))
            self._size_to_content()
        self.refresh()

    def _size_to_content(self) -> None:
        if self._most:
            wanted = max(1, min(self._most, len(self._lines)))
            if self._height != wanted:
                self._height = wanted
                self.styles.height = wanted

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        index = y + self.scroll_offset.y
        width = self.size.width
        plain = self.rich_style
        if index >= len(self._lines):
            return Strip.blank(width, plain)
        segments = [
            Segment(
                span.text,
                plain
                if not span.kind
                else plain + self.get_component_rich_style(f"rows--{span.kind}", partial=True),
            )
            for span in self._lines[index]
        ]
        return Strip(segments).adjust_cell_length(width, plain)
