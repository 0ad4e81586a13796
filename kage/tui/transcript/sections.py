"""The parts of a reply as they stream in: markdown, and the model's thoughts.

Taking text in only stores it; it is cut into pieces when somebody looks.
"""

from __future__ import annotations

from typing import Any

from kage.tui.transcript.border import Border
from kage.tui.transcript.line import Line, Span
from kage.tui.transcript.markdown.splitter import Chunk, Kind, Splitter
from kage.tui.transcript.pieces import MarkdownPiece, Piece, RowsPiece, guess, text_pieces
from kage.tui.transcript.wrap import fold

_SHOWN_THOUGHT = 4_000  # characters one portion of thoughts is cut at


class Section:
    """Text that grows until it is finished."""

    def __init__(self) -> None:
        self.finished = False
        self._border = Border()
        self._parts: list[str] = []
        self.size = 0

    def feed(self, text: str) -> None:
        """Take more text, not yet sanitised."""
        self._keep(self._border.feed(text))

    def finish(self) -> None:
        """Say that nothing follows."""
        if not self.finished:
            self._keep(self._border.finish())
            self.finished = True

    @property
    def source(self) -> str:
        """The text so far."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def _keep(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self.size += len(text)


class Markdown(Section):
    """Markdown, cut into pieces that no later text changes and a few that it may."""

    def __init__(self) -> None:
        super().__init__()
        self._splitter = Splitter()
        self._unread: list[str] = []  # kept, not yet cut
        self._chunks: list[Chunk] = []
        self._ended = False

    def _keep(self, text: str) -> None:
        super()._keep(text)
        if text:
            self._unread.append(text)

    def chunks(self) -> list[Chunk]:
        """Cut what is new and give all finished chunks."""
        unread, self._unread = self._unread, []
        for text in unread:
            self._chunks += self._splitter.feed(text)
        if self.finished and not self._ended:
            self._ended = True
            self._chunks += self._splitter.finish()
        return self._chunks

    def references(self) -> dict[str, Any]:
        """Collect the link references the text defines, as the parser records them."""
        found: dict[str, Any] = {}
        for chunk in self.chunks():
            if chunk.references:
                from kage.tui.transcript.markdown.parse import parse  # after the first frame

                parse(chunk.text, found)
        return found

    def frozen(self, start: int, first_gap: int, references: dict[str, Any]) -> list[Piece]:
        """Give the pieces of the finished chunks from number ``start`` on."""
        chunks = self.chunks()
        return [
            _piece(chunks[at], chunks[at - 1] if at else None, first_gap, references)
            for at in range(start, len(chunks))
        ]

    def tail(self, first_gap: int) -> list[Piece]:
        """Give the pieces of what may still change."""
        if self._ended:
            return []
        before = self._chunks[-1] if self._chunks else None
        out: list[Piece] = []
        for chunk in self._splitter.tail():
            out.append(_piece(chunk, before, first_gap, {}, live=chunk.kind is not Kind.TEXT))
            before = chunk
        return out


def _piece(
    chunk: Chunk,
    before: Chunk | None,
    first_gap: int,
    references: dict[str, Any],
    *,
    live: bool = False,
) -> MarkdownPiece:
    if before is None:
        gap = first_gap
    elif chunk.glued or (not chunk.first and not chunk.spaced):
        gap = 0
    else:
        gap = 1 if chunk.spaced or chunk.kind is not Kind.ITEM else 0
    known = references if references and "[" in chunk.text else None
    return MarkdownPiece(chunk, gap=gap, live=live, references=known)


class Thoughts(Section):
    """The model's reasoning: one row, or all of it when unfolded."""

    def pieces(self, target: str, *, unfolded: bool, gap: int) -> list[Piece]:
        """Give the row that says how much was thought, and the thoughts when ``unfolded``."""
        words = self.source.count(" ") + self.source.count("\n") + 1
        verb = "thought" if self.finished else "thinking"
        mark = "▾" if unfolded else "▸"
        text = f"{mark} {verb} · {words} words"

        def make(space: int) -> list[Line]:
            return fold((Span(text, "thinking"),), space)[:1]

        out: list[Piece] = [RowsPiece(make, gap=gap, target=target)]
        if unfolded:
            shown = self.source.strip("\n")
            out += text_pieces(shown, style="words", role="thinking", bar="│ ")
        return out

    def estimate(self, width: int, *, unfolded: bool) -> int:
        """Guess the rows."""
        return 2 + (guess(self.source, width) if unfolded else 0)
