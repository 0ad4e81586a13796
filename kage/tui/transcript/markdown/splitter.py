"""Cut markdown, as it streams in, into chunks that no later text can change.

A chunk is one or a few top-level blocks, one list item, or up to ``FENCE_LINES`` lines of a code
fence. Chunks depend on the text alone, never on how it arrived. HTML has no meaning here, so the
rules are those of CommonMark for paragraphs, lists, quotes, tables, code and fences; a chunk that
grows past its limit is cut at a line, so that the open chunk stays cheap to parse again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from kage.tui.transcript.markdown import marks

FENCE_LINES = 100  # lines of one fence chunk
TEXT_LIMIT = 6_000  # characters of a paragraph, quote or list item
BLOCK_LIMIT = 24_000  # characters of a table or of one fence chunk
LINE_LIMIT = 4_000  # characters after which a line is cut


class Kind(StrEnum):
    """What a chunk holds."""

    TEXT = "text"  # paragraphs, headings, quotes, tables
    ITEM = "item"  # one list item with what is nested in it
    CODE = "code"  # indented code
    FENCE = "fence"  # lines of a fence, without its marks


class Chunk(NamedTuple):
    """A finished stretch of markdown, to be parsed by itself; a fence's text is the bare code."""

    kind: Kind
    text: str
    spaced: bool = False  # a blank line stood in front of it
    info: str = ""  # a fence's language line
    margin: int = 0  # columns it was moved left by, where it is the rest of an item
    first: bool = True  # False: goes on with the block of the chunk before
    last: bool = True  # False: the block goes on in the next chunk
    glued: bool = False  # no newline stands between the chunk before and this one
    references: bool = False  # may define link references


@dataclass(slots=True)
class _Open:
    """The chunk being collected."""

    kind: Kind
    spaced: bool = False
    lines: list[str] = field(default_factory=list)
    size: int = 0
    offset: int = 0  # ITEM: column where the item's content starts
    dedent: int = 0  # columns taken off each line
    mark: str = ""  # FENCE, or a fence inside an ITEM: the opening run
    fence_indent: int = 0
    info: str = ""
    head: tuple[str, ...] = ()  # lines repeated when the chunk is cut: a table's, a fence's
    first: bool = True
    glued: bool = False
    references: bool = False
    quoted: bool = False  # TEXT: a quote is among it

    def chunk(self, *, last: bool) -> Chunk:
        return Chunk(
            self.kind,
            "\n".join(self.lines),
            self.spaced,
            self.info,
            self.dedent,
            self.first,
            last,
            self.glued,
            self.references,
        )


class Splitter:
    """Takes text in any portions, gives finished chunks."""

    __slots__ = ("_blanks", "_glue", "_open", "_partial", "_scanned")

    def __init__(self) -> None:
        self._open: _Open | None = None
        self._blanks = 0  # blank lines since the last line
        self._partial: list[str] = []  # a line that has no end yet
        self._scanned = 0  # characters in it
        self._glue = False  # the next line is the rest of one that was cut

    def feed(self, text: str) -> list[Chunk]:
        """Take more text and give the chunks it finished."""
        out: list[Chunk] = []
        *whole, rest = text.split("\n")
        for part in whole:
            self._add(part, out)
            line = "".join(self._partial)
            self._partial, self._scanned = [], 0
            self._line(line, out)
        self._add(rest, out)
        return out

    def finish(self) -> list[Chunk]:
        """Give what is left; the text is at its end."""
        out: list[Chunk] = []
        line = "".join(self._partial)
        self._partial, self._scanned = [], 0
        if line:
            self._line(line, out)
        self._close(out)
        return out

    def tail(self) -> list[Chunk]:
        """Give the chunks the text would end with if it stopped now; changes nothing.

        A last line whose first marks could still become several things is left out.
        """
        twin = Splitter()
        twin._blanks, twin._glue = self._blanks, self._glue
        now = self._open
        twin._open = replace(now, lines=now.lines.copy()) if now else None
        line = "".join(self._partial)
        fenced = now is not None and now.kind is Kind.FENCE
        if line and (fenced or not marks.UNDECIDED.fullmatch(line)):
            twin._partial = [line]
        return twin.finish()

    def _add(self, part: str, out: list[Chunk]) -> None:
        """Add to the line that has no end yet; an overlong one is cut, at a space if it can."""
        if not part:
            return
        self._partial.append(part)
        self._scanned += len(part)
        if self._scanned <= LINE_LIMIT:
            return
        line = "".join(self._partial)
        while len(line) > LINE_LIMIT:
            cut = line.rfind(" ", LINE_LIMIT // 2, LINE_LIMIT) + 1 or LINE_LIMIT
            self._line(line[:cut], out)
            self._glue = True
            line = line[cut:]
        self._partial, self._scanned = [line], len(line)

    def _line(self, line: str, out: list[Chunk]) -> None:
        """Put one whole line where it belongs."""
        now = self._open
        if self._glue:
            self._glue = False
            if line:
                self._rest_of_line(now, line, out)
        elif now is not None and now.kind is Kind.FENCE:
            self._fence_line(now, line, out)
        elif not line.strip(" \t"):
            self._blank_line(now, out)
        elif now is not None and _holds(now, line):
            self._extend(now, line, out)
        else:
            self._top(now, line, out)

    def _top(self, now: _Open | None, line: str, out: list[Chunk]) -> None:
        """Place a line that is not inside an item, a fence or indented code."""
        if fence := marks.opens_fence(line):
            opened = self._begin(Kind.FENCE, out)
            opened.mark, opened.info = fence[1], fence[2].strip()
            opened.fence_indent = marks.column(line)
        elif marks.HEADING.match(line) or marks.breaks(line):
            self._extend(self._begin(Kind.TEXT, out), line, out)
            self._close(out)
        elif now is not None and now.kind is Kind.TEXT:
            if marks.interrupts(line) or (now.quoted and marks.is_item(line)):
                self._item(line, out)
                return
            ends = marks.ends_text(line, now.lines)
            self._extend(now, line, out)
            if ends:
                self._close(out)
        elif marks.RULE.fullmatch(line):
            self._extend(self._begin(Kind.TEXT, out), line, out)
            self._close(out)
        elif marks.is_item(line):
            self._item(line, out)
        elif now is not None and not self._blanks and _goes_on_lazily(now, line):
            self._extend(now, line, out)  # the item's paragraph goes on, lazily
        else:
            kind = Kind.CODE if marks.column(line) >= 4 else Kind.TEXT
            self._extend(self._begin(kind, out), line, out)

    def _item(self, line: str, out: list[Chunk]) -> None:
        opened = self._begin(Kind.ITEM, out)
        opened.offset = marks.content_offset(line)
        self._extend(opened, line, out)

    def _blank_line(self, now: _Open | None, out: list[Chunk]) -> None:
        if now is not None and (
            now.kind is Kind.TEXT
            # an item may begin with at most one blank line
            or (now.kind is Kind.ITEM and len(now.lines) == 1 and marks.bare_item(now.lines[0]))
        ):
            self._close(out)
        self._blanks += 1

    def _fence_line(self, now: _Open, line: str, out: list[Chunk]) -> None:
        if marks.closes_fence(line, now.mark):
            self._close(out)
            return
        if len(now.lines) >= FENCE_LINES or now.size > BLOCK_LIMIT:
            now = self._next_fence(now, out)
        now.lines.append(marks.dedent(line, now.fence_indent))
        now.size += len(line) + 1

    def _next_fence(self, now: _Open, out: list[Chunk]) -> _Open:
        """Cut a fence and go on with it in a new chunk."""
        self._close(out, last=False)
        self._open = replace(now, lines=[], size=0, first=False, spaced=False, glued=False)
        return self._open

    def _rest_of_line(self, now: _Open | None, line: str, out: list[Chunk]) -> None:
        """Place the rest of a line that was cut: in a new chunk of the same kind."""
        if now is not None and now.kind is Kind.FENCE:
            opened = self._next_fence(now, out)
        else:
            self._close(out, last=False)
            opened = self._open = _Open(Kind.TEXT, first=False)
            if now is not None and now.kind is Kind.ITEM:
                opened.dedent = now.dedent or now.offset
        opened.glued = True
        opened.lines.append(line)
        opened.size += len(line)

    def _begin(self, kind: Kind, out: list[Chunk]) -> _Open:
        """Close what is open and open a chunk."""
        self._close(out)
        self._open = _Open(kind, spaced=bool(self._blanks))
        self._blanks = 0
        return self._open

    def _extend(self, now: _Open, line: str, out: list[Chunk]) -> None:
        """Add a line to the open chunk; a chunk that is too long is cut first."""
        table = now.kind is Kind.TEXT and now.head
        if now.size > (BLOCK_LIMIT if table else TEXT_LIMIT):
            now = self._continue(now, out)
        else:
            now.lines += [""] * self._blanks
            now.size += self._blanks
        self._blanks = 0
        line = marks.dedent(line, now.dedent)
        if now.kind is Kind.TEXT:
            now.quoted = now.quoted or bool(marks.QUOTE.match(line))
            now.references = now.references or bool(marks.REFERENCE.match(line))
            if not now.head and now.lines and "|" in now.lines[-1]:
                now.head = (now.lines[-1], line) if marks.DELIMITER.fullmatch(line) else ()
        elif now.kind is Kind.ITEM:
            _follow_fence(now, line)
        now.lines.append(line)
        now.size += len(line) + 1

    def _continue(self, now: _Open, out: list[Chunk]) -> _Open:
        """Cut an overlong chunk at a line and go on with one of the same kind."""
        self._close(out, last=False)
        self._open = replace(
            now,
            lines=list(now.head),
            size=0,
            spaced=bool(self._blanks),
            dedent=now.dedent or now.offset,
            first=False,
            glued=False,
            references=False,
        )
        return self._open

    def _close(self, out: list[Chunk], *, last: bool = True) -> None:
        now, self._open = self._open, None
        if now is not None:
            out.append(now.chunk(last=last))


def _holds(now: _Open, line: str) -> bool:
    """Say whether the line's indent alone makes it part of the open chunk."""
    if now.kind is Kind.ITEM:
        return marks.column(line) >= now.offset
    return now.kind is Kind.CODE and marks.column(line) >= 4


def _goes_on_lazily(now: _Open, line: str) -> bool:
    """Say whether the open item ends in a paragraph, which takes the line although it is not
    indented.
    """
    if now.kind is not Kind.ITEM or now.mark or marks.QUOTE.match(line):
        return False
    last = marks.innermost(now.lines[-1])
    return not (
        not last
        or marks.HEADING.match(last)
        or marks.RULE.fullmatch(last)
        or marks.opens_fence(last)
    )


def _follow_fence(now: _Open, line: str) -> None:
    """Note a fence inside an item, so that it can be opened again after a cut."""
    bare = marks.behind_mark(line)
    if now.mark:
        if marks.closes_fence(bare, now.mark):
            now.mark, now.head = "", ()
    elif fence := marks.opens_fence(bare):
        now.mark = fence[1]
        deeper = max(0, marks.column(line) - (0 if now.dedent else now.offset))
        now.head = (" " * deeper + bare,)
