"""How many terminal cells a text takes, and where it can be cut without breaking a glyph.

The widths are those of the library that writes to the terminal, so rows measured here are rows
there.
"""

from __future__ import annotations

import re

from rich.cells import cell_len, split_graphemes

_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]")
TAB = 4  # columns between tab stops in code


def width(text: str) -> int:
    """Give the cells ``text`` takes."""
    return len(text) if text.isascii() else cell_len(text)


def graphemes(text: str) -> list[tuple[str, int]]:
    """Cut ``text`` into what a person sees as one character, each with its cells."""
    spans, _ = split_graphemes(text)
    glyphs: list[tuple[str, int]] = []
    half_flag = False
    for start, end, cells in spans:
        glyph = text[start:end]
        flag = bool(_FLAG.match(glyph))
        if glyphs and flag and half_flag:
            before, size = glyphs[-1]
            glyphs[-1] = (before + glyph, size + cells)
            half_flag = False
            continue
        if glyphs and not cells:
            before, size = glyphs[-1]
            glyphs[-1] = (before + glyph, size)
            continue
        glyphs.append((glyph, cells))
        half_flag = flag
    return glyphs


def chop(text: str, first: int, rest: int) -> list[str]:
    """Cut ``text`` into pieces of at most ``first``, then ``rest`` cells, never inside a glyph.

    A glyph wider than the room gets a piece of its own. ``first`` may be 0 or less: then the
    first piece is empty.
    """
    rest = max(1, rest)
    if text.isascii():
        head = max(0, first)
        return [text[:head]] + [text[at : at + rest] for at in range(head, len(text), rest)]
    pieces, size, room = [""], 0, max(0, first)
    for glyph, cells in graphemes(text):
        if size + cells > room and (pieces[-1] or len(pieces) == 1):
            pieces.append("")
            size, room = 0, rest
        pieces[-1] += glyph
        size += cells
    return pieces


def clip(text: str, cells: int) -> str:
    """Cut ``text`` to ``cells`` cells, the last one an ellipsis when something was cut."""
    if cells <= 0:
        return ""
    if width(text) <= cells:
        return text
    if cells == 1:
        return "…"
    return chop(text[: cells * 8], cells - 1, cells - 1)[0].rstrip() + "…"


def clip_middle(text: str, cells: int) -> str:
    """Cut ``text`` to ``cells`` cells, keeping both ends, as paths are best read."""
    if width(text) <= cells or cells < 8:
        return clip(text, cells)
    head = (cells - 1) // 3
    tail = cells - 1 - head
    start = chop(text[: head * 8], head, head)[0]
    end, size = "", 0
    for glyph, room in reversed(graphemes(text[-tail * 8 :])):
        if size + room > tail:
            break
        end, size = glyph + end, size + room
    return f"{start}…{end}"


def expand_tabs(text: str, stop: int = TAB) -> str:
    """Replace tabs by the spaces up to the next tab stop, in cells."""
    if "\t" not in text:
        return text
    head, *rest = text.split("\t")
    out, size = [head], width(head)
    for part in rest:
        gap = stop - size % stop
        out += [" " * gap, part]
        size += gap + width(part)
    return "".join(out)
