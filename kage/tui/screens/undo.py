"""What undoing a call would do, shown before it is done."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from kage.core.sanitise import visible
from kage.core.undo import UndoPlan, UndoStep
from kage.tui.keymap import Context, Keymap
from kage.tui.screens.help import scrolled
from kage.tui.text import MUTED, shown
from kage.tui.widgets.rows import Row, Rows, RowsView, Span, row

_MAX_STEPS = 200
_KINDS = {"+": "added", "-": "removed", "@": "hunk"}


class UndoScreen(ModalScreen[bool]):
    """Shows a plan; gives True to carry it out."""

    AUTO_FOCUS = "RowsView"

    def __init__(self, plan: UndoPlan, keymap: Keymap) -> None:
        super().__init__()
        self.plan = plan
        self._keymap = keymap

    def compose(self) -> ComposeResult:
        """Make the parts."""
        take, close = self._keymap.key("list_take"), self._keymap.key("close")
        with Vertical(classes="sheet"):
            title = f"Undo: {shown(self.plan.record.title, 100)}"
            yield Static(Content.styled(title, "bold $accent"), classes="sheet-title")
            yield RowsView(id="undo-text")
            words = f"{take} undoes this · {close} changes nothing"
            if not self.plan.possible:
                words = f"{close} goes back"
            yield Static(Content.styled(words, MUTED), classes="sheet-note")

    def on_mount(self) -> None:
        """Fill in the plan."""
        self.query_one(RowsView).show(undo_rows(self.plan))

    def on_key(self, event: events.Key) -> None:
        """Undo, go back, or scroll."""
        event.stop()
        event.prevent_default()
        action = self._keymap.find(Context.LIST, event.key)
        if action == "close" or (action == "list_take" and self.plan.possible):
            self.dismiss(action == "list_take")
            return
        scrolled(self.query_one(RowsView), action)


def undo_rows(plan: UndoPlan) -> Rows:
    """Give the plan as rows: what stands in the way first, then each file, then the difference."""
    rows: list[Row] = []
    if plan.why:
        rows.append(row(Span(f"This call cannot be undone: {plan.why}", "error"), words=True))
    elif plan.conflicts:
        text = "Nothing can be undone, since files changed after the call; take that back first."
        rows.append(row(Span(text, "error"), words=True))
    elif not plan.possible:
        rows.append(row(Span("Everything stands as it stood before the call.", "muted")))
    if plan.record.beside:
        count = plan.record.beside
        text = f"{count} other call{'s' * (count > 1)} ran meanwhile: changes may be of them."
        rows.append(row(Span(text, "warning"), words=True))
    if rows:
        rows.append(row(""))
    rows += [_step(step) for step in plan.steps[:_MAX_STEPS]]
    if len(plan.steps) > _MAX_STEPS:
        rows.append(row(Span(f"… and {len(plan.steps) - _MAX_STEPS} more", "muted")))
    if plan.diff:
        rows += [row(""), row(Span("from now to before", "strong"))]
        for line in visible(plan.diff).rstrip("\n").split("\n"):
            rows.append(row(Span(line, _KINDS.get(line[:1], "")), hang="  "))
    return tuple(rows)


def _step(step: UndoStep) -> Row:
    name = shown(step.change.shown, 300)
    if step.conflict:
        return row(
            Span("in the way    ", "error"), name, Span(f"  {shown(step.conflict)}", "muted")
        )
    if step.left:
        return row(Span("stays         ", "warning"), name, Span(f"  {step.left}", "muted"))
    if step.done:
        return row(Span("as before     ", "muted"), name)
    return row(Span(step.change.remedy.ljust(14), "key"), name)
