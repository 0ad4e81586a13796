"""Questions about definitions that changed: put to the person, answered, acted upon."""

from __future__ import annotations

import asyncio
from typing import Protocol

from kage.core.commands import AnswerPin
from kage.core.errors import UsageError
from kage.core.events import DefinitionSettled, DefinitionsHeld, Noticed, Publish
from kage.core.levels import Level
from kage.core.pins import HeldChange, PinAnswer


class PinDesk(Protocol):
    """Who knows the definitions; ``permissions.pins.PinBook`` is the real one."""

    def answer(self, change: HeldChange, answer: PinAnswer) -> bool:
        """Take an answer; False when the definition is no longer the one that was shown."""
        ...


class PinnedServers(Protocol):
    """What is needed of the manager."""

    def held(self) -> tuple[HeldChange, ...]:
        """Give every definition that is not offered until the person looked at it."""
        ...

    def repin(self) -> None:
        """Compare all definitions anew."""
        ...


class Pinning:
    """Shows what is held and takes the answers; without a desk nothing ever is."""

    def __init__(self, desk: PinDesk | None, servers: PinnedServers, publish: Publish) -> None:
        self._desk = desk
        self._servers = servers
        self._publish = publish

    def ask(self, name: str) -> None:
        """Show what is held of one server, or of all, because a person wants to see it."""
        changes = tuple(one for one in self._servers.held() if name in ("", one.server))
        if changes:
            self._publish(DefinitionsHeld(changes=changes, asked=True))
            return
        whose = f" of {name}" if name else ""
        self._publish(Noticed(level=Level.INFO, what=f"No definition{whose} is held"))

    async def answer(self, command: AnswerPin) -> None:
        """Take a person's answer and offer what may be offered now.

        Raises:
            KageError: nothing can be decided here.
        """
        if self._desk is None:
            raise UsageError("Nothing is compared here")
        change, answer = command.change, command.answer
        if not await asyncio.to_thread(self._desk.answer, change, answer):
            what = f"{change.label} of {change.server} has changed since it was shown"
            why = "your answer does not count"
            self._publish(Noticed(level=Level.WARNING, what=what, why=why))
            self.ask(change.server)
            return
        self._publish(DefinitionSettled(server=change.server, name=change.name, answer=answer))
        self._servers.repin()
