"""Definitions that changed: a card that tells of them, and the sheet that decides about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kage.core.commands import AnswerPin
from kage.core.events import DefinitionSettled, DefinitionsHeld
from kage.core.levels import Level
from kage.core.pins import HeldChange, PinAnswer
from kage.tui.controllers.stage import Backstage
from kage.tui.text import shown

if TYPE_CHECKING:
    from kage.tui.screens.pins import PinsScreen

_SAID = {
    PinAnswer.ACCEPT: "is accepted as it is now",
    PinAnswer.LATER: "stays held; /mcp pins shows it again",
    PinAnswer.REFUSE: "stays held, and you are not asked about this form again",
    PinAnswer.DISABLE: "is not offered any more, whatever it becomes",
}
_NAMED = 4  # names on one card


class PinSheets:
    """Tells what is held, and shows it when the person asks.

    Args:
        backstage: What its sheet is put up with.
        card: Puts a card into the conversation: level, what, why, what to do.
    """

    def __init__(
        self, backstage: Backstage, *, card: Callable[[Level, str, str, str], None]
    ) -> None:
        self._stage = backstage.stage
        self._keymap = backstage.keymap
        self._remark = backstage.remark
        self._card = card
        self._sheet: PinsScreen | None = None

    @property
    def sheet(self) -> PinsScreen | None:
        """The sheet on the screen."""
        return self._sheet

    def hear(self, event: DefinitionsHeld | DefinitionSettled) -> None:
        """Something is held, is to be shown, or was decided."""
        if isinstance(event, DefinitionSettled):
            name = shown(event.name, 60) or "the text"
            self._remark(f"{name} of {shown(event.server, 40)} {_SAID[event.answer]}")
        elif event.asked:
            self._show(event.changes)
        else:
            self._tell(event.changes)

    def _tell(self, changes: Iterable[HeldChange]) -> None:
        whose: dict[tuple[str, bool], list[HeldChange]] = defaultdict(list)
        for change in changes:
            whose[change.server, change.passed].append(change)
        for (server, passed), found in whose.items():
            name = shown(server, 40)
            what = f"{name} changed what it says of {_counted(found)}"
            if passed:
                fix = 'It is offered all the same, since its entry says pin = "warn".'
            else:
                what += "; held until you look at it"
                fix = f"See the difference and decide: /mcp pins {name}"
            self._card(Level.WARNING, what, "\n".join(_lines(found)), fix)

    def _show(self, changes: tuple[HeldChange, ...]) -> None:
        from kage.tui.screens.pins import PinsScreen

        if self._sheet is not None:
            self._sheet.replace(changes)
            return
        self._sheet = PinsScreen(changes, self._keymap, decided=self._decide)
        self._stage.push_screen(self._sheet, lambda _: self._closed())

    def _decide(self, change: HeldChange, answer: PinAnswer) -> None:
        if answer is not PinAnswer.LATER:
            self._stage.send(AnswerPin(change=change, answer=answer))

    def _closed(self) -> None:
        self._sheet = None


def _counted(changes: list[HeldChange]) -> str:
    names = [shown(change.label, 60) for change in changes]
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return ", ".join(names)


def _lines(changes: list[HeldChange]) -> list[str]:
    found = [f"{shown(one.label, 60)}: {shown(one.why, 200)}" for one in changes[:_NAMED]]
    notes = dict.fromkeys(
        note for one in changes for part in one.differences for note in part.notes
    )
    return [*found, *list(notes)[:_NAMED]]
