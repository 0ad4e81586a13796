"""Answers about entries: only exact ones count, and what is trusted then starts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from kage.agent.trusting import Trusting
from kage.config.load import Loaded
from kage.config.schema import ServerSpec, Settings
from kage.core.commands import AnswerTrust
from kage.core.errors import UsageError
from kage.core.events import Event, Noticed, TrustRequested, TrustSettled
from kage.core.trust import Identity, Standing, TrustAnswer, TrustQuestion

SPEC = ServerSpec(name="team", origin="/repo", command="x")


class Desk:
    """One entry with one hash."""

    def __init__(self) -> None:
        self.loaded = Loaded(settings=Settings(servers={"team": SPEC}))
        self.hash = "now"
        self.standing = Standing.NEW

    def waiting(self) -> Iterable[ServerSpec]:
        return (SPEC,) if self.standing is Standing.NEW else ()

    def question(self, name: str) -> TrustQuestion:
        if name != "team":
            raise UsageError("there is none")
        identity = Identity(name=name, origin="/repo", entry_hash=self.hash)
        return TrustQuestion(identity=identity, standing=self.standing, place="p")

    def answer(self, name: str, entry_hash: str, answer: TrustAnswer) -> bool:
        if entry_hash == self.hash and answer is TrustAnswer.TRUST:
            self.standing = Standing.TRUSTED
        return entry_hash == self.hash


class Servers:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def start(self, specs: Iterable[ServerSpec]) -> None:
        self.told.append([spec.name for spec in specs])

    def retrust(self, name: str) -> None:
        self.told.append(name)


def asked(answer: TrustAnswer, shown: str) -> tuple[list[Event], list[object]]:
    events: list[Event] = []
    servers = Servers()
    trusting = Trusting(Desk(), servers, events.append)

    async def body() -> None:
        await trusting.ask_waiting()
        await trusting.answer(AnswerTrust(name="team", entry_hash=shown, answer=answer))

    asyncio.run(body())
    return events, servers.told


def test_what_is_trusted_starts() -> None:
    events, told = asked(TrustAnswer.TRUST, "now")
    assert [type(event) for event in events] == [TrustRequested, TrustSettled]
    assert told == [["team"], "team"]


def test_any_other_answer_starts_nothing() -> None:
    for answer in (TrustAnswer.LATER, TrustAnswer.NEVER):
        assert asked(answer, "now")[1] == []


def test_an_entry_that_changed_since_is_asked_about_again() -> None:
    events, told = asked(TrustAnswer.TRUST, "before")
    assert [type(event) for event in events] == [TrustRequested, Noticed, TrustRequested]
    assert told == []


def test_without_a_desk_nothing_is_asked() -> None:
    events: list[Event] = []
    asyncio.run(Trusting(None, Servers(), events.append).ask_waiting())
    assert events == []
