"""Servers' questions through the engine: told as events, answered by command."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from kage.agent.forms import Inquiries
from kage.agent.sampling import SeatSampler
from kage.agent.seat import Seat
from kage.core.content import Text
from kage.core.errors import KageError
from kage.core.events import Event, RequestCompleted, RequestReceived, RequestSettled
from kage.core.forms import Form
from kage.core.messages import UserMessage
from kage.core.requests import Action, FormRequest, RequestReply, SampleRequest

REQUEST = FormRequest(id="r1", server="srv", message="", form=Form(fields=()))


def test_a_question_is_told_answered_once_and_settled() -> None:
    events: list[Event] = []

    async def main() -> None:
        inquiries = Inquiries(events.append)
        asking = asyncio.create_task(inquiries.answer(REQUEST))
        await asyncio.sleep(0)
        reply = RequestReply(action=Action.ACCEPT, values={"a": "secret"})
        assert inquiries.reply("r1", reply)
        assert not inquiries.reply("r1", reply)
        assert not inquiries.reply("ghost", reply)
        assert await asking == reply
        inquiries.completed("srv", "r1")

    asyncio.run(main())
    assert events == [
        RequestReceived(request=REQUEST),
        RequestSettled(request_id="r1", action=Action.ACCEPT),
        RequestCompleted(server="srv", request_id="r1"),
    ]
    assert "secret" not in repr(events)
    assert "secret" not in repr(RequestReply(action=Action.ACCEPT, values={"a": "secret"}))


def test_a_question_nobody_waits_for_is_withdrawn() -> None:
    events: list[Event] = []

    async def main() -> None:
        asking = asyncio.create_task(Inquiries(events.append).answer(REQUEST))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])

    asyncio.run(main())
    assert events[-1] == RequestSettled(request_id="r1", action=None)


def test_without_a_model_there_is_no_answer() -> None:
    sampler = SeatSampler()
    request = SampleRequest(system="", messages=(UserMessage(content=(Text("x"),)),), max_tokens=1)
    for seat in (None, cast(Seat, SimpleNamespace(model="offline"))):  # who never plays a model
        sampler.seat = seat
        assert sampler.model == ""
        with pytest.raises(KageError, match="No model"):
            asyncio.run(sampler.sample(request))
