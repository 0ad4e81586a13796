"""What a follow-up may carry: the state just received, answers to what was asked, nothing else."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kage.core.canonical import canonical, digest
from kage.core.errors import Refused
from kage.mcp.client.wire.exchange import Exchange, FollowUp
from kage.mcp.client.wire.metadata import call_of
from kage.mcp.client.wire.seal import followed, sealed
from kage.permissions.seal import SealBook
from tests.permissions.test_seal import anything, words

ARGUMENTS = {"path": "a"}
ASKED = {
    "resultType": "input_required",
    "inputRequests": {"q": {"method": "roots/list"}},
    "requestState": "s1",
}
ANSWERS: dict[str, Any] = {"q": {"roots": []}}


def first(result: dict[str, Any] | None = None) -> Exchange:
    exchange = Exchange()
    exchange.decision = "d1"
    exchange.call = call_of({"name": "t", "arguments": ARGUMENTS})
    exchange.result = ASKED if result is None else result
    return exchange


def book(follow: FollowUp) -> SealBook:
    """Give a book with a decision about exactly this follow-up."""
    made = SealBook()
    made.open("c", "t", digest(follow.sealed(ARGUMENTS)), "d2")
    return made


def params(name: str = "t", **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments or ARGUMENTS}


def test_a_follow_up_goes_out_once_with_its_answers_under_their_own_decision() -> None:
    follow = FollowUp(of=first(), state="s1", responses=ANSWERS)
    seals = book(follow)
    made, decision = sealed(seals, "c", params(), follow)
    assert decision == "d2" and not len(seals)
    assert made == {**params(), "inputResponses": ANSWERS, "requestState": "s1"}
    again = book(follow)
    with pytest.raises(Refused):
        sealed(again, "c", params(), follow)
    assert len(again) == 1


@pytest.mark.parametrize(
    ("follow", "sent"),
    [
        (FollowUp(of=first(), state="s2", responses=ANSWERS), params()),
        (FollowUp(of=first(), state=None, responses=ANSWERS), params()),
        (FollowUp(of=first(), state="s1", responses={"other": {}}), params()),
        (FollowUp(of=first(), state="s1", responses=ANSWERS), params(path="b")),
        (FollowUp(of=first(), state="s1", responses=ANSWERS), params("u")),
        (FollowUp(of=first({"content": []}), state="s1", responses=ANSWERS), params()),
        (FollowUp(of=first({}), state=None, responses=None), params()),
    ],
    ids=["state", "no state", "key", "arguments", "name", "complete", "no answer"],
)
def test_anything_else_is_refused_even_with_a_decision(
    follow: FollowUp, sent: dict[str, Any]
) -> None:
    seals = book(follow)
    seals.open("c", "t", digest(follow.sealed(sent["arguments"])), "d3")
    with pytest.raises(Refused):
        sealed(seals, "c", sent, follow)


@pytest.mark.parametrize(
    "other",
    [
        FollowUp(of=first(), state="s1", responses={"q": {"roots": [1]}}),
        FollowUp(of=first(), state="s1", responses=None),
    ],
)
def test_a_decision_about_other_answers_does_not_count(other: FollowUp) -> None:
    seals = book(other)
    with pytest.raises(Refused):
        sealed(seals, "c", params(), FollowUp(of=first(), state="s1", responses=ANSWERS))
    assert len(seals) == 1


def test_a_decision_about_a_call_lets_no_follow_up_through() -> None:
    follow = FollowUp(of=first(), state="s1", responses=ANSWERS)
    seals = SealBook()
    seals.open("c", "t", digest(ARGUMENTS), "d1")
    with pytest.raises(Refused):
        sealed(seals, "c", params(), follow)


def test_requests_without_a_seal_are_held_to_what_was_asked_too() -> None:
    assert followed({"uri": "x"}, FollowUp(of=first(), state="s1", responses=ANSWERS)) == {
        "uri": "x", "inputResponses": ANSWERS, "requestState": "s1",
    }  # fmt: skip
    with pytest.raises(Refused):
        followed({"uri": "x"}, FollowUp(of=first(), state="s2", responses=ANSWERS))


def test_ten_thousand_random_follow_ups_carry_what_was_decided_once() -> None:
    dice = random.Random(20_260_728)
    for _ in range(1_000):  # ten values each
        arguments = {f"{n}{words(dice)}": anything(dice, 2) for n in range(10)}
        answers = {"q": {words(dice): anything(dice, 2)}}
        before = Exchange()
        before.decision = "d1"
        before.call = call_of({"name": "t", "arguments": arguments})
        before.result = ASKED
        follow = FollowUp(of=before, state="s1", responses=answers)
        seals = SealBook()
        seals.open("c", "t", digest(follow.sealed(arguments)), "d2")
        edited = {**arguments, "\0edited": 1}
        with pytest.raises(Refused):
            sealed(seals, "c", {"name": "t", "arguments": edited}, follow)
        other = FollowUp(of=before, state="s1", responses={"q": {"\0edited": 1}})
        with pytest.raises(Refused):
            sealed(seals, "c", {"name": "t", "arguments": arguments}, other)
        before.followed = False
        made, decision = sealed(seals, "c", {"name": "t", "arguments": arguments}, follow)
        assert (decision, canonical(made["arguments"])) == ("d2", canonical(arguments))
        assert made["inputResponses"] == answers and made["requestState"] == "s1"
        with pytest.raises(Refused):
            sealed(seals, "c", {"name": "t", "arguments": arguments}, follow)
