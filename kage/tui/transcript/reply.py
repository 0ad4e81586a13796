"""A reply of the model as a block: its sections, of which only the last can grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kage.core.sanitise import visible
from kage.tui.transcript.blocks import Block, header, note
from kage.tui.transcript.pieces import MarkdownPiece, Piece
from kage.tui.transcript.sections import Markdown, Section, Thoughts


class ReplyBlock(Block):
    """Sections of thoughts and of markdown, in the order they came."""

    def __init__(self, block_id: str, model: str, *, headed: bool) -> None:
        super().__init__(block_id)
        self.model = visible(model, single_line=True)
        self.headed = headed
        self.note = ""
        self._done = False
        self._whole = False  # all pieces are there for good
        self._sections: list[Section] = []
        self._cursor = (0, 0)  # section, and its finished chunks that have pieces
        self._references: dict[str, Any] = {}

    def stream(self, text: str, *, thinking: bool) -> None:
        """Add streamed text; the pieces follow when they are next asked for."""
        if not text:
            return
        last = self._sections[-1] if self._sections else None
        if last is None or last.finished or isinstance(last, Thoughts) is not thinking:
            if last is not None:
                last.finish()
            last = Thoughts() if thinking else Markdown()
            self._sections.append(last)
        last.feed(text)

    def finish(self, remark: str) -> None:
        """Say that nothing more comes; ``remark`` says how it ended if not well."""
        self._done = True
        self.note = visible(remark, single_line=True)
        if self._sections:
            self._sections[-1].finish()

    def pieces(self) -> Sequence[Piece]:
        """See Block; of a growing reply only the end is made anew."""
        if self._pieces is None:
            self._restart()
        elif self._whole:
            return self._pieces
        assert self._pieces is not None
        pieces = self._pieces
        before = pieces[self.stable :]
        del pieces[self.stable :]
        tail = self._advance(pieces)
        start, self.stable = self.stable, len(pieces)
        pieces += tail
        _reuse(pieces, start, before)
        if self._done:
            if self._resolve():
                return self.pieces()
            if self.note:
                pieces.append(note(f"({self.note})", gap=1 if self._sections else 0))
            self.stable = len(pieces)
            self._whole = True
        return pieces

    def _restart(self) -> None:
        self._pieces = [header("kage", self.model, "kage")] if self.headed else []
        self.stable = len(self._pieces)
        self._cursor = (0, 0)
        self._whole = False

    def _advance(self, pieces: list[Piece]) -> list[Piece]:
        """Add the pieces that will not change any more and give those that may."""
        at, taken = self._cursor
        tail: list[Piece] = []
        while at < len(self._sections):
            section = self._sections[at]
            gap = 0 if self.headed and not at else 1
            if isinstance(section, Markdown):
                fresh = section.frozen(taken, gap, self._references)
                pieces += fresh
                taken += len(fresh)
                tail = section.tail(gap)
            elif isinstance(section, Thoughts):
                shown = section.pieces(self.id, unfolded=self.open, gap=gap)
                if section.finished:
                    pieces += shown
                else:
                    tail = shown
            if not section.finished:
                break
            at, taken = at + 1, 0
        self._cursor = (at, taken)
        return tail

    def _resolve(self) -> bool:
        """Once all is there, use link references the text defines; say if any are new."""
        found: dict[str, Any] = {}
        for section in self._sections:
            if isinstance(section, Markdown):
                found.update(section.references())
        if found.keys() == self._references.keys():
            return False
        self._references = found
        self.changed()
        return True

    @property
    def foldable(self) -> bool:
        """See Block."""
        return any(isinstance(part, Thoughts) for part in self._sections)

    @property
    def empty(self) -> bool:
        """See Block."""
        return not self.headed and not self._sections and not self.note

    def estimate(self, width: int) -> int:
        """See Block."""
        rows = 2 * self.headed + 2 * bool(self.note)
        for section in self._sections:
            if isinstance(section, Thoughts):
                rows += section.estimate(width, unfolded=self.open)
            else:
                rows += 1 + section.size // max(8, width - 8)
        return rows

    def source(self) -> str:
        """See Block."""
        texts = [part.source for part in self._sections if isinstance(part, Markdown)]
        return "\n\n".join(texts or [part.source for part in self._sections])

    def plain(self) -> str:
        """See Block; thoughts are left out."""
        texts = [part.source for part in self._sections if isinstance(part, Markdown)]
        if self.headed:
            texts.insert(0, f"kage · {self.model}:" if self.model else "kage:")
        if self.note:
            texts.append(f"({self.note})")
        return "\n".join(text.rstrip("\n") for text in texts)


def _reuse(pieces: list[Piece], start: int, before: Sequence[Piece]) -> None:
    """Keep the pieces that say the same as before, so that they need no new layout."""
    for place, old in enumerate(before, start):
        if place >= len(pieces):
            return
        new = pieces[place]
        if isinstance(old, MarkdownPiece) and isinstance(new, MarkdownPiece) and old.same(new):
            pieces[place] = old
