"""Questions about entries that are not trusted: put to the person, answered, acted upon."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from kage.config.load import Loaded
from kage.config.schema import ServerSpec
from kage.core.commands import AnswerTrust
from kage.core.errors import KageError, UsageError
from kage.core.events import Noticed, Publish, TrustRequested, TrustSettled
from kage.core.levels import Level
from kage.core.trust import Standing, TrustAnswer, TrustQuestion


class TrustDesk(Protocol):
    """Who knows what is trusted; ``cli.trusting.TrustDesk`` is the real one."""

    @property
    def loaded(self) -> Loaded:
        """The configuration as it counts now."""
        ...

    def waiting(self) -> Iterable[ServerSpec]:
        """Give the entries a person has still to decide about."""
        ...

    def question(self, name: str) -> TrustQuestion:
        """Give everything to be shown about an entry.

        Raises:
            KageError: there is none, or a variable in its command is not set.
        """
        ...

    def answer(self, name: str, entry_hash: str, answer: TrustAnswer) -> bool:
        """Take an answer; False when the entry is no longer the one that was shown."""
        ...


class TrustedServers(Protocol):
    """What is needed of the manager."""

    def start(self, specs: Iterable[ServerSpec]) -> None:
        """Make ``specs`` the servers that are wanted."""
        ...

    def retrust(self, name: str) -> None:
        """Ask again whether a server may start."""
        ...


class Trusting:
    """Asks about entries and lets the trusted ones start; without a desk it does nothing."""

    def __init__(self, desk: TrustDesk | None, servers: TrustedServers, publish: Publish) -> None:
        self._desk = desk
        self._servers = servers
        self._publish = publish

    async def ask_waiting(self) -> None:
        """Ask about every entry that waits; one that cannot be shown says so as its fault."""
        if self._desk is None:
            return
        for question in await asyncio.to_thread(self._waiting, self._desk):
            self._publish(TrustRequested(question=question))

    async def ask(self, name: str) -> None:
        """Show the question about one entry, or about all that wait, because a person wants it.

        Raises:
            KageError: there is no such entry, or it cannot be put together.
        """
        desk = self._there()
        if name:
            question = await asyncio.to_thread(desk.question, name)
            if question.standing is Standing.TRUSTED:
                own = question.identity.origin == "user"
                what = f"{name} is your own entry" if own else f"{name} is trusted already"
                self._publish(Noticed(level=Level.INFO, what=what))
                return
            self._publish(TrustRequested(question=question, asked=True))
            return
        questions = await asyncio.to_thread(self._waiting, desk)
        for question in questions:
            self._publish(TrustRequested(question=question, asked=True))
        if not questions:
            self._publish(Noticed(level=Level.INFO, what="No server waits to be trusted"))

    async def answer(self, command: AnswerTrust) -> None:
        """Take a person's answer and start what may start now.

        Raises:
            KageError: there is no such entry any more.
        """
        desk = self._there()
        name, answer = command.name, command.answer
        taken = await asyncio.to_thread(desk.answer, name, command.entry_hash, answer)
        if not taken:
            what = f"{name} has changed since its question was shown, so your answer does not count"
            self._publish(Noticed(level=Level.WARNING, what=what))
            await self.ask(name)
            return
        self._publish(TrustSettled(name=name, answer=answer))
        if answer is TrustAnswer.TRUST and desk.loaded.settings.mcp_enabled:
            self._servers.start(desk.loaded.settings.servers.values())
            self._servers.retrust(name)

    def _waiting(self, desk: TrustDesk) -> list[TrustQuestion]:
        found = []
        for spec in desk.waiting():
            try:
                found.append(desk.question(spec.name))
            except KageError:
                continue  # its state tells what is missing
        return found

    def _there(self) -> TrustDesk:
        if self._desk is None:
            raise UsageError("Nothing can be trusted here")
        return self._desk
