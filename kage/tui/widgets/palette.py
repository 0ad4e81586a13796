"""The list over the prompt: what the draft could become."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from textual import events
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widgets import Static

from kage.core.sanitise import clip
from kage.tui.text import MUTED

ROWS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One entry; texts are safe to show.

    ``insert`` replaces the draft when it is taken, or what is between ``span``: two places of it,
    each line and column.
    """

    label: str
    insert: str
    help: str = ""
    complete: bool = True  # the draft can be sent once it is taken
    span: tuple[tuple[int, int], tuple[int, int]] | None = None


class Palette(Static):
    """Shows choices and marks one; keys are handled by whoever holds the prompt."""

    class Clicked(Message):
        """An entry was clicked."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._choices: tuple[Choice, ...] = ()
        self._marked = 0
        self._first = 0
        self.display = False

    @property
    def marked(self) -> Choice | None:
        """The entry that would be taken."""
        return self._choices[self._marked] if self._choices else None

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What is offered."""
        return self._choices

    def offer(self, choices: tuple[Choice, ...]) -> None:
        """Show ``choices``, the first one marked; none hides the list."""
        if choices == self._choices:
            return
        self._choices = choices
        self._marked = self._first = 0
        self.display = bool(choices)
        self._draw()

    def move(self, step: int) -> None:
        """Mark another entry, around the ends."""
        if self._choices:
            self._marked = (self._marked + step) % len(self._choices)
            self._draw()

    def mark(self, index: int) -> None:
        """Mark the entry at ``index``."""
        if 0 <= index < len(self._choices):
            self._marked = index
            self._draw()

    def on_resize(self) -> None:
        """Cut the lines for the new width."""
        self._draw()

    def _draw(self) -> None:
        rows = min(ROWS, max(1, self.screen.size.height - 6))
        self._first = min(self._first, self._marked)
        self._first = max(self._first, self._marked - rows + 1)
        visible = self._choices[self._first : self._first + rows]
        width = max(10, self.size.width or self.screen.size.width) - 4
        column = min(max((cell_len(choice.label) for choice in visible), default=0), width // 2) + 2
        lines = []
        for index, choice in enumerate(visible, self._first):
            label = set_cell_size(clip(choice.label, column - 2), column)
            text = Content.assemble(label, (clip(choice.help, max(0, width - column)), MUTED))
            text = text.stylize(Style.from_meta({"choice": index}))
            lines.append(text.stylize("reverse") if index == self._marked else text)
        self.update(Content("\n").join(lines))

    def on_click(self, event: events.Click) -> None:
        """Tell which entry was clicked."""
        index = event.style.meta.get("choice")
        if isinstance(index, int):
            event.stop()
            self.post_message(self.Clicked(index))
