"""Colours of the transcript: from the words of a role to a style, and from a line to segments.

Muted text is only ever ``dim``, which every terminal and every theme shows readable; colours are
the theme's own text colours, so light, dark and 16-colour terminals all have their contrast.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.segment import Segment
from rich.style import Style

from kage.tui.transcript.cells import width as cells
from kage.tui.transcript.line import Line, Span

PREFIX = "transcript--"
SELECTED = "selected"  # the word of a role for text under the selection
_STYLES = {  # word of a role: declarations
    "you": "color: $text-primary; text-style: bold;",
    "kage": "color: $text-secondary; text-style: bold;",
    "strong": "text-style: bold;",
    "em": "text-style: italic;",
    "strike": "text-style: strike;",
    "code": "color: $text-accent;",
    "link": "color: $text-primary; text-style: underline;",
    "url": "text-style: dim;",
    "heading": "color: $text-primary; text-style: bold;",
    "subheading": "text-style: bold;",
    "quote": "text-style: italic;",
    "bullet": "color: $text-secondary;",
    "rule": "text-style: dim;",
    "bar": "text-style: dim;",
    "codebar": "color: $text-secondary; text-style: dim;",
    "keyword": "color: $text-primary; text-style: bold;",
    "string": "color: $text-success;",
    "comment": "text-style: dim italic;",
    "number": "color: $text-warning;",
    "builtin": "color: $text-secondary;",
    "name": "color: $text-accent;",
    "added": "color: $text-success;",
    "removed": "color: $text-error;",
    "hunk": "color: $text-secondary;",
    "context": "text-style: dim;",
    "tool": "text-style: bold;",
    "detail": "text-style: dim;",
    "summary": "text-style: dim;",
    "time": "text-style: dim;",
    "progress": "color: $text-secondary;",
    "marker": "text-style: dim;",
    "thinking": "text-style: dim italic;",
    "output": "text-style: dim;",
    "reason": "",
    "fix": "color: $text-secondary;",
    "waiting": "color: $text-warning;",
    "running": "color: $text-secondary;",
    "ok": "color: $text-success;",
    "tool_error": "color: $text-error;",
    "refused": "color: $text-warning;",
    "never_sent": "color: $text-warning;",
    "unknown": "color: $text-error; text-style: bold;",
    "interrupted": "color: $text-warning;",
    "info": "color: $text-secondary;",
    "warning": "color: $text-warning; text-style: bold;",
    "error": "color: $text-error; text-style: bold;",
    "cursor": "text-style: reverse;",
}
CLASSES = frozenset(PREFIX + word for word in _STYLES)
CSS = "\n".join(f"& > .{PREFIX}{word} {{ {rules} }}" for word, rules in _STYLES.items())


class Palette:
    """Styles of one widget in one theme.

    Args:
        component: Gives the style of a component class, without what it inherits.
        base: The style under everything.
        selected: The style of selected text.
    """

    def __init__(self, component: Callable[[str], Style], base: Style, selected: Style) -> None:
        self._component = component
        self._selected = selected
        self.base = base
        self._styles: dict[str, Style] = {}

    def style(self, role: str) -> Style:
        """Give the style of a role; words nobody knows change nothing."""
        found = self._styles.get(role)
        if found is None:
            found = self.base
            for word in role.lstrip("~").split("."):
                if word == SELECTED:
                    found += self._selected
                elif word in _STYLES:
                    found += self._component(PREFIX + word)
            self._styles[role] = found
        return found

    def segments(self, line: Line, width: int) -> tuple[list[Segment], int]:
        """Colour a line and fill it to ``width`` cells; gives the cells it really takes."""
        style = self.style
        out = [Segment(span.text, style(span.role)) for span in line.spans if span.text]
        size = sum(cells(span.text) for span in line.spans)
        right = sum(cells(span.text) for span in line.right)
        gap = width - size - right - (1 if line.right and width >= 12 else 0)
        if line.right and gap > 0:
            out.append(Segment(" " * gap, self.base))
            out += [Segment(span.text, style(span.role)) for span in line.right]
            size += gap + right
        if size < width:
            out.append(Segment(" " * (width - size), self.base))
            size = width
        return out, size


def highlighted(line: Line, start: int, end: int) -> Line:
    """Give the line with the characters from ``start`` to ``end`` (-1: its end) selected."""
    if end < 0:
        end = len(line.text)
    spans: list[Span] = []
    at = 0
    for span in line.spans:
        first, last = max(0, start - at), max(0, min(len(span.text), end - at))
        at += len(span.text)
        if first >= last:
            spans.append(span)
            continue
        for text, chosen in (
            (span.text[:first], span.role),
            (span.text[first:last], f"{span.role}.{SELECTED}"),
            (span.text[last:], span.role),
        ):
            if text:
                spans.append(Span(text, chosen, span.link))
    return line._replace(spans=tuple(spans))
