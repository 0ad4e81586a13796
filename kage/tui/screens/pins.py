"""Definitions that changed, one at a time: the difference, and answers of which none is preset."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from kage.core.pins import Difference, HeldChange, Piece, PinAnswer
from kage.core.sanitise import clip, exact
from kage.tui.keymap import Context, Keymap
from kage.tui.screens.asking import AskingScreen
from kage.tui.screens.help import scrolled
from kage.tui.text import shown
from kage.tui.widgets.rows import Row, Rows, RowsView, Span, row

LONGEST = 1 << 20  # characters of one text; nothing of a definition is cut off
_KINDS = {"same": "muted", "old": "removed", "new": "added"}
_ANSWERS = {
    "pin_accept": PinAnswer.ACCEPT,
    "pin_later": PinAnswer.LATER,
    "pin_refuse": PinAnswer.REFUSE,
    "pin_disable": PinAnswer.DISABLE,
}


class PinsScreen(AskingScreen):
    """Shows what is held; ``decided`` gets each answer, closing it leaves the rest held."""

    CONTEXT = Context.PINS

    def __init__(
        self,
        changes: tuple[HeldChange, ...],
        keymap: Keymap,
        *,
        decided: Callable[[HeldChange, PinAnswer], None],
    ) -> None:
        super().__init__(keymap)
        self._changes = changes
        self._decided = decided
        self._place = 0

    def compose(self) -> ComposeResult:
        """Make the parts."""
        with Vertical(classes="sheet"):
            yield Static("", classes="sheet-title")
            yield RowsView(id="pins-text")
            yield Static(
                self.keys_line(
                    ("pin_accept", "accept"),
                    ("pin_later", "not now"),
                    ("pin_refuse", "refuse this form"),
                    ("pin_disable", "disable for good"),
                    *((("pin_next", "next"),) if len(self._changes) > 1 else ()),
                    ("pin_close", "back"),
                ),
                classes="sheet-note",
            )

    def on_mount(self) -> None:
        """Show the first one."""
        super().on_mount()
        self._show()

    @property
    def change(self) -> HeldChange:
        """The one that is shown."""
        return self._changes[self._place]

    def replace(self, changes: tuple[HeldChange, ...]) -> None:
        """Show other ones: what was shown has changed again."""
        self._changes, self._place = changes, 0
        self._show()

    def act(self, action: str) -> None:
        """Take an answer, go to another one, scroll, or close."""
        answer = _ANSWERS.get(action)
        if answer is not None:
            self._answer(answer)
        elif action == "pin_close":
            self.dismiss(None)
        elif action in ("pin_next", "pin_back"):
            step = 1 if action == "pin_next" else -1
            self._place = (self._place + step) % len(self._changes)
            self._show()
        else:
            scrolled(self.query_one(RowsView), action.replace("pin_", "list_"))

    def _answer(self, answer: PinAnswer) -> None:
        change = self.change
        self._decided(change, answer)
        rest = tuple(other for other in self._changes if other is not change)
        if not rest:
            self.dismiss(None)
            return
        self._place = min(self._place, len(rest) - 1)
        self._changes = rest
        self._show()

    def _show(self) -> None:
        change, count = self.change, len(self._changes)
        which = f"   {self._place + 1} of {count}" if count > 1 else ""
        head = f"{shown(change.server, 40)}: may {shown(change.label, 60)} count as it is now?"
        title = Content.assemble((head, "bold $warning"), which)
        self.query_one(".sheet-title", Static).update(title)
        self.query_one(RowsView).show(rows_of(change))


def rows_of(change: HeldChange) -> Rows:
    """Give everything about one definition as rows."""
    subject = shown(change.label, 200)
    rows = [row(Span(f"{subject} {shown(change.why, 400)}", "strong"), words=True)]
    for found in change.differences:
        rows += [row(""), *_difference(found)]
    if not change.differences:
        rows += [row(""), row(Span("There is nothing to compare it with.", "muted"))]
    return tuple(rows)


def _difference(found: Difference) -> Iterator[Row]:
    yield row(Span(_whole(found.part), "key"), hang="  ")
    for note in found.notes:
        yield row(Span(f"  ⚠ {note}", "warning"), hang="    ", words=True)
    if any(piece.kind == "old" for piece in found.pieces):
        yield _line("  - ", found.pieces, without="new")
    if any(piece.kind == "new" for piece in found.pieces):
        yield _line("  + ", found.pieces, without="old")


def _line(mark: str, pieces: tuple[Piece, ...], *, without: str) -> Row:
    kind = "removed" if without == "new" else "added"
    spans = [
        Span(_whole(piece.text), _KINDS[piece.kind]) for piece in pieces if piece.kind != without
    ]
    return row(Span(mark, kind), *spans, hang="    ")


def _whole(text: str) -> str:
    """Give a text to its last character: what nobody sees is spelled out."""
    return clip(exact(text[:LONGEST]), LONGEST)
