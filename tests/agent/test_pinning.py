"""Answers about definitions: only exact ones count, and what is accepted is offered then."""

from __future__ import annotations

import asyncio

import pytest

from kage.agent.mcp_status import McpStatus
from kage.agent.pinning import Pinning
from kage.core.commands import AnswerPin
from kage.core.errors import UsageError
from kage.core.events import DefinitionSettled, DefinitionsHeld, Event, Noticed
from kage.core.pins import Cause, HeldChange, PinAnswer
from kage.core.servers import ServerState, ServerStatus
from kage.core.tools import Invocation
from tests.agent.fakes import FakeServers


def change(name: str = "pay", *, server: str = "bank", digest: str = "now") -> HeldChange:
    return HeldChange(server=server, origin="user", name=name, digest=digest, cause=Cause.CHANGED)


class Desk:
    """Knows one digest."""

    def __init__(self) -> None:
        self.answers: list[PinAnswer] = []

    def answer(self, change: HeldChange, answer: PinAnswer) -> bool:
        self.answers.append(answer)
        return change.digest == "now"


def test_asking_shows_what_is_held_of_one_server_or_of_all() -> None:
    events: list[Event] = []
    servers = FakeServers(holds=(change(), change(server="other")))
    pinning = Pinning(Desk(), servers, events.append)
    for name, count in (("", 2), ("bank", 1), ("none", 0)):
        pinning.ask(name)
        last = events[-1]
        if count:
            assert isinstance(last, DefinitionsHeld) and last.asked and len(last.changes) == count
        else:
            assert isinstance(last, Noticed) and "none" in last.what


def test_an_answer_counts_for_what_was_shown_and_everything_is_compared_again() -> None:
    events: list[Event] = []
    servers = FakeServers(holds=(change(),))
    pinning = Pinning(Desk(), servers, events.append)
    asyncio.run(pinning.answer(AnswerPin(change=change(), answer=PinAnswer.ACCEPT)))
    assert events == [DefinitionSettled(server="bank", name="pay", answer=PinAnswer.ACCEPT)]
    assert servers.repinned == 1
    asyncio.run(pinning.answer(AnswerPin(change=change(digest="old"), answer=PinAnswer.ACCEPT)))
    assert isinstance(events[-2], Noticed) and isinstance(events[-1], DefinitionsHeld)
    assert servers.repinned == 1


def test_without_a_desk_nothing_is_decided() -> None:
    pinning = Pinning(None, FakeServers(), lambda event: None)
    with pytest.raises(UsageError):
        asyncio.run(pinning.answer(AnswerPin(change=change(), answer=PinAnswer.ACCEPT)))


def test_the_model_sees_that_a_tool_is_held_and_no_word_of_its_new_text(tmp_path) -> None:
    held = change()
    status = ServerStatus(
        name="bank",
        origin="user",
        state=ServerState.CONNECTED,
        since=0.0,
        held=(f"{held.label}: {held.why}",),
    )
    call = Invocation(call_id="c", arguments={}, workspace=tmp_path, roots=(), scratch=tmp_path)
    result = asyncio.run(McpStatus(lambda: (status,)).run(call))
    assert "held, until the person looked at it: pay: changed" in str(result.content)
