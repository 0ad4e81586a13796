"""What controllers that put sheets over the chat need of the app."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from kage.core.commands import Command

if TYPE_CHECKING:
    from textual.screen import Screen


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
