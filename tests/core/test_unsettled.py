"""Which calls nobody knows the outcome of."""

from __future__ import annotations

from typing import Any

import pytest

from kage.core.content import Text
from kage.core.messages import AssistantMessage, Message, Outcome, Stop, ToolCall, ToolMessage
from kage.core.unsettled import unsettled


def told(call_id: str, outcome: Outcome, **arguments: Any) -> list[Message]:
    made = ToolCall(id=call_id, name="s__t", arguments=arguments)
    return [
        AssistantMessage(parts=(made,), model="m", stop=Stop.TOOLS),
        ToolMessage(call_id=call_id, name="s__t", outcome=outcome, content=(Text("x"),)),
    ]


def names(*messages: list[Message]) -> list[str]:
    return [item.call.id for item in unsettled(part for told in messages for part in told)]


def test_unknown_calls_come_newest_first_and_others_not_at_all() -> None:
    ends = [told(outcome.value, outcome, n=n) for n, outcome in enumerate(Outcome)]
    assert names(*ends) == ["unknown"]
    assert names(told("a", Outcome.UNKNOWN, n=1), told("b", Outcome.UNKNOWN, n=2)) == ["b", "a"]


@pytest.mark.parametrize(
    ("again", "left"),
    [
        (Outcome.OK, []),
        (Outcome.TOOL_ERROR, []),
        (Outcome.UNKNOWN, ["b"]),
        (Outcome.REFUSED, ["a"]),
        (Outcome.NEVER_SENT, ["a"]),
    ],
)
def test_the_same_call_made_again_ends_it_unless_it_was_not_sent(
    again: Outcome, left: list[str]
) -> None:
    assert names(told("a", Outcome.UNKNOWN, n=1), told("b", again, n=1)) == left
    assert "a" in names(told("a", Outcome.UNKNOWN, n=1), told("b", again, n=2))


def test_what_held_a_secret_or_cannot_be_sent_is_not_repeated() -> None:
    for value in ("[redacted:TOKEN]", float("nan")):
        (item,) = unsettled(told("a", Outcome.UNKNOWN, deep=[{"v": value}]))
        assert item.obstacle
    (item,) = unsettled(told("a", Outcome.UNKNOWN, v="plain"))
    assert item.obstacle == ""
