"""What controllers that put sheets over the chat need of the app, and share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from textual.screen import Screen

    from kage.core.commands import Command
    from kage.tui.keymap import Keymap
    from kage.tui.screens.asking import Unasked


class Stage(Protocol):
    """Where sheets are shown, and from where commands go to the engine."""

    @property
    def free(self) -> bool:
        """Whether nothing lies over the chat."""
        ...

    def push_screen(self, screen: Screen[Any], callback: Callable[[Any], None]) -> object:
        """Push a screen; ``callback`` gets its result."""
        ...

    def send(self, command: Command) -> None:
        """Hand a command to the engine."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Backstage:
    """What every sheet that nobody opened by hand is put up with.

    Attributes:
        stage: Where it is shown.
        keymap: Its keys.
        quiet: Seconds without a key before it takes keys.
        spill: Takes what was typed before that into the draft.
        remark: Shows a passing line.
    """

    stage: Stage
    keymap: Keymap
    quiet: float
    spill: Callable[[str], None]
    remark: Callable[[str], None]

    def unasked(self) -> Unasked:
        """Give a sheet its patience."""
        from kage.tui.screens.asking import Unasked

        return Unasked(quiet=self.quiet, spill=self.spill)
