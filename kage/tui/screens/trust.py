"""Whether an entry may start: everything it would do, and three answers, none of them preset."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from kage.core.sanitise import clip, exact
from kage.core.trust import Standing, TrustAnswer, TrustQuestion
from kage.tui.keymap import Context, Keymap
from kage.tui.screens.asking import AskingScreen, Unasked
from kage.tui.screens.help import scrolled
from kage.tui.text import shown
from kage.tui.widgets.rows import Row, Rows, RowsView, Span, row

LONGEST = 1 << 20  # characters of one value; nothing of an entry is cut off
_COLUMN = (12, 24)  # cells of the names, at least and at most
_HEADS = {
    Standing.NEW: "Nothing of it has run yet.",
    Standing.CHANGED: "It has changed since you trusted it:",
    Standing.HELD: "It was changed while kage was running:",
    Standing.NEVER: "You did not want it before.",
    Standing.TRUSTED: "You trust it already.",
}
_ANSWERS = {
    "trust_yes": TrustAnswer.TRUST,
    "trust_later": TrustAnswer.LATER,
    "trust_never": TrustAnswer.NEVER,
}


class TrustScreen(AskingScreen):
    """Shows one entry in full; ``decided`` gets the answer, closing it means not now."""

    CONTEXT = Context.TRUST

    def __init__(
        self,
        question: TrustQuestion,
        keymap: Keymap,
        *,
        decided: Callable[[TrustAnswer], None],
        unasked: Unasked | None = None,
    ) -> None:
        super().__init__(keymap, unasked)
        self.question = question
        self._decided = decided

    def compose(self) -> ComposeResult:
        """Make the parts."""
        name = shown(self.question.name, 40)
        what = "May this change count?" if self._own else "May this server start?"
        with Vertical(classes="sheet"):
            yield Static(Content.styled(f"{name}: {what}", "bold $warning"), classes="sheet-title")
            yield RowsView(id="trust-text")
            yield Static(
                self.keys_line(
                    ("trust_yes", "trust this entry as it stands"),
                    ("trust_later", "not now"),
                    *(() if self._own else (("trust_never", "never"),)),
                ),
                classes="sheet-note",
            )

    def on_mount(self) -> None:
        """Fill in the entry."""
        super().on_mount()
        self.query_one(RowsView).show(rows_of(self.question))

    @property
    def _own(self) -> bool:
        return self.question.identity.origin == "user"

    def act(self, action: str) -> None:
        """Take an answer, or scroll."""
        answer = _ANSWERS.get(action)
        if answer is None:
            scrolled(self.query_one(RowsView), action.replace("trust_", "list_"))
        elif not (self._own and answer is TrustAnswer.NEVER):
            self._decided(answer)
            self.dismiss(None)


def rows_of(question: TrustQuestion) -> Rows:
    """Give the whole question as rows."""
    parts = question.identity.seen
    least, most = _COLUMN
    width = min(max((least, *map(len, parts))), most)
    rows = [
        _line("declared in", question.place, width),
        row(Span(_HEADS[question.standing], "strong"), words=True),
    ]
    rows += [
        row(Span(f"⚠ {shown(text, 400)}", "warning"), words=True) for text in question.warnings
    ]
    for change in question.changes:
        rows.append(row(Span(shown(change.part, 200), "strong")))
        if change.old:
            rows.append(row(Span(f"  - {_whole(change.old)}", "removed"), hang="    "))
        if change.new:
            rows.append(row(Span(f"  + {_whole(change.new)}", "added"), hang="    "))
    rows += [row(""), row(Span("What it would do:", "strong"))]
    rows += [_line(part, value, width) for part, value in parts.items()]
    if question.variables:
        read = ", ".join(
            f"{name} ({'set' if is_set else 'not set'})" for name, is_set in question.variables
        )
        rows.append(_line("it reads", read, width))
    return tuple(rows)


def _whole(value: str) -> str:
    """Give a value to its last space: what differs in space alone is another command."""
    return clip(exact(value[:LONGEST]), LONGEST)


def _line(part: str, value: str, width: int) -> Row:
    name = shown(part, 200).ljust(width)
    return row(Span(f"{name} ", "key"), _whole(value), hang=" " * (width + 1))
