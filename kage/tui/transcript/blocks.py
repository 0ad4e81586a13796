"""The blocks of the conversation, and the two simplest: what the person said, and cards.

Each gives its pieces on demand. ``stable`` pieces at the front stay as they are until ``epoch``
changes, so that a reader of a growing reply only looks at its end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from kage.core.sanitise import visible
from kage.tui.transcript.line import Line, Span
from kage.tui.transcript.pieces import Piece, RowsPiece, guess, text_pieces
from kage.tui.transcript.rows import Card, card_head
from kage.tui.transcript.wrap import fold, wrap

_LONG_PROMPT = 24  # lines of a prompt shown before it is folded


class Block(ABC):
    """One entry of the conversation."""

    def __init__(self, block_id: str) -> None:
        self.id = block_id
        self.epoch = 0
        self.stable = 0
        self.open = False  # unfolded
        self._pieces: list[Piece] | None = None

    def pieces(self) -> Sequence[Piece]:
        """Give the pieces, made now if need be."""
        if self._pieces is None:
            self._pieces = self._make()
            self.stable = len(self._pieces)
        return self._pieces

    def changed(self) -> None:
        """Forget the pieces; they are made anew when next asked for."""
        self._pieces = None
        self.stable = 0
        self.epoch += 1

    def fold(self, *, unfolded: bool) -> None:
        """Unfold or fold the block."""
        if self.open != unfolded:
            self.open = unfolded
            self.changed()

    @property
    def foldable(self) -> bool:
        """Whether there is something to unfold."""
        return False

    @property
    def empty(self) -> bool:
        """Whether the block has nothing to show."""
        return False

    def estimate(self, width: int) -> int:
        """Guess the rows without making pieces."""
        return 1

    @abstractmethod
    def source(self) -> str:
        """Give what a person wants when they copy the block."""

    def plain(self) -> str:
        """Give the block as plain text, for the terminal after the end."""
        return self.source()

    def _make(self) -> list[Piece]:
        """Make the pieces as the block is now; a block that keeps its own needs none."""
        return []


def header(name: str, detail: str, role: str) -> RowsPiece:
    """Make the row that says who speaks."""

    def make(space: int) -> list[Line]:
        spans = [Span("▌", f"~{role}"), Span(name, role)]
        if detail:
            spans.append(Span(f" · {detail}", "detail"))
        return fold(spans, space)[:1]

    return RowsPiece(make, gap=1, bleeds=True)


class UserBlock(Block):
    """What the person said."""

    def __init__(self, block_id: str, text: str) -> None:
        super().__init__(block_id)
        self.text = visible(text)

    @property
    def foldable(self) -> bool:
        """See Block."""
        return self.text.count("\n") >= _LONG_PROMPT

    def estimate(self, width: int) -> int:
        """See Block."""
        return 2 + guess(self.text if self.open or not self.foldable else self.text[:2_000], width)

    def source(self) -> str:
        """See Block."""
        return self.text

    def plain(self) -> str:
        """See Block."""
        return f"you:\n{self.text}"

    def _make(self) -> list[Piece]:
        out: list[Piece] = [header("you", "", "you")]
        if not self.foldable or self.open:
            out += text_pieces(self.text, style="words", role="user")
            if self.foldable:
                out.append(note(f"▾ all {self.text.count(chr(10)) + 1} lines", target=self.id))
            return out
        shown = self.text.split("\n")[: _LONG_PROMPT // 2]
        out += text_pieces("\n".join(shown), style="words", role="user")
        more = self.text.count("\n") + 1 - len(shown)
        out.append(note(f"▸ {more} more lines", target=self.id))
        return out


def note(text: str, *, target: str = "", gap: int = 0) -> RowsPiece:
    """Make a muted row; a click on it toggles ``target``."""
    return RowsPiece(lambda space: fold((Span(text, "marker"),), space), gap=gap, target=target)


class CardBlock(Block):
    """A failure or a notice."""

    def __init__(self, block_id: str, card: Card) -> None:
        super().__init__(block_id)
        self.card = card

    def update(self, card: Card) -> None:
        """Show something else."""
        self.card = card
        self.changed()

    def estimate(self, width: int) -> int:
        """See Block."""
        return 2 + bool(self.card.why) + len(self.card.lines) + bool(self.card.fix)

    def source(self) -> str:
        """See Block."""
        card = self.card
        parts = (card.title, card.why, *card.lines, f"→ {card.fix}" if card.fix else "")
        return visible("\n".join(part for part in parts if part))

    def _make(self) -> list[Piece]:
        card = self.card
        out: list[Piece] = [RowsPiece(lambda space: _card_title(card, space), gap=1)]
        if card.why:
            out += text_pieces(visible(card.why), style="words", role="reason", bar="  ")
        if card.lines:
            quoted = visible("\n".join(card.lines))
            out += text_pieces(quoted, style="cells", role="output", bar="  │ ")
        if card.fix:
            out += text_pieces("→ " + visible(card.fix), style="words", role="fix", bar="  ")
        return out


def _card_title(card: Card, space: int) -> list[Line]:
    mark, title = card_head(card, space)
    lines = wrap((title,), space - 2)
    return [
        line._replace(spans=((Span("  ", "~pad") if number else mark), *line.spans))
        for number, line in enumerate(lines)
    ]
