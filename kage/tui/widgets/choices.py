"""A list to choose one value from, or several."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from kage.core.forms import Field, Kind
from kage.tui.text import shown

MOST_LINES = 8


class Choices(OptionList):
    """The choices of a field; enter or space chooses, and takes back what may be left open."""

    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, field: Field) -> None:
        self._several = field.kind is Kind.MANY
        self._required = field.required
        if field.kind is Kind.FLAG:
            self._values: tuple[Any, ...] = (True, False)  # any JSON value
            self._labels: tuple[str, ...] = ("yes", "no")
        else:
            self._values = tuple(choice.value for choice in field.choices)
            self._labels = tuple(shown(choice.label, 120) for choice in field.choices)
        self._chosen: set[int] = set()
        super().__init__(*(Option(self._line(index)) for index in range(len(self._values))))
        self.styles.max_height = MOST_LINES

    @property
    def value(self) -> Any:  # any JSON value
        """What is chosen: a value, a list of values, or None."""
        chosen = [self._values[index] for index in sorted(self._chosen)]
        if self._several:
            return chosen if chosen or self._required else None
        return chosen[0] if chosen else None

    def choose(self, value: object) -> None:
        """Mark a value, or each of a list of values; None marks nothing."""
        wanted = value if self._several and isinstance(value, list | tuple) else [value]
        self._chosen = {
            index
            for index, known in enumerate(self._values)
            if any(isinstance(known, bool) == isinstance(w, bool) and known == w for w in wanted)
        }
        self._redraw()
        self.highlighted = min(self._chosen, default=0)

    def on_key(self, event: events.Key) -> None:
        """Choose the marked line."""
        if event.key in ("enter", "space"):
            event.stop()
            event.prevent_default()
            if self.highlighted is not None:
                self._toggle(self.highlighted)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose the clicked line."""
        event.stop()
        self._toggle(event.option_index)

    def _toggle(self, index: int) -> None:
        if index in self._chosen:
            if self._several or not self._required:
                self._chosen.discard(index)
        elif self._several:
            self._chosen.add(index)
        else:
            self._chosen = {index}
        self._redraw()

    def _redraw(self) -> None:
        for index in range(len(self._values)):
            self.replace_option_prompt_at_index(index, self._line(index))

    def _line(self, index: int) -> Content:
        chosen = index in self._chosen
        mark = ("■ " if chosen else "□ ") if self._several else ("● " if chosen else "○ ")
        return Content.assemble((mark, "$accent" if chosen else ""), self._labels[index])
