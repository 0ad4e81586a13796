"""The rounds of one request in the era of 2026-07-28: it asks back, is answered, and goes on.

The SDK has such a loop; this one lets every round pass the gate's view. A follow-up carries the
state that was just received and nothing else of it changes (DESIGN section 6, "Sealed").
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from kage.mcp.client.asking.answering import Answering, Asked
from kage.mcp.client.asking.requests import Unanswerable
from kage.mcp.client.wire.exchange import Exchange, FollowUp

MAX_ROUNDS = 10
MAX_QUESTIONS = 16  # of one round
_FIRST_PAUSE = 0.05  # seconds before a follow-up that only carries state
_LONGEST_PAUSE = 1.0

_Answer = TypeVar("_Answer")
Send = Callable[[Exchange], Awaitable[None]]


class Stuck(Exception):
    """The request cannot go on; the text says why, in words for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What the request is about: ``name`` of the tool or prompt, or the URI."""

    name: str
    arguments: Mapping[str, Any] | None = None


async def while_up(gone: asyncio.Event, asking: Awaitable[_Answer]) -> _Answer:
    """Wait for an answer of the person while its connection is up; then it is withdrawn.

    Raises:
        mcp.MCPError: the connection closed first.
    """
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED

    task = asyncio.ensure_future(asking)
    end = asyncio.create_task(gone.wait())
    try:
        await asyncio.wait((task, end), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise MCPError(code=CONNECTION_CLOSED, message="Connection closed")
        return task.result()
    finally:
        task.cancel()
        end.cancel()


class Rounds:
    """Sends the requests of one connection until they are complete.

    Args:
        gone: Set once the connection is over: nobody waits for an answer any more.
    """

    def __init__(self, answering: Answering, gone: asyncio.Event) -> None:
        self._answering = answering
        self._gone = gone

    async def send(
        self,
        send: Send,
        exchange: Exchange,
        subject: Subject,
        pause: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Send a request and answer what it asks back; ``exchange`` holds the last result.

        Args:
            send: Sends the same request again, for another exchange.
            pause: Stops the clock of the request while the person is asked.

        Raises:
            Stuck: a question has no answer, or there were too many rounds.
            mcp.MCPError: the server refused, or the connection closed.
        """
        await send(exchange)
        leg, delay = exchange, _FIRST_PAUSE
        for _ in range(MAX_ROUNDS):
            result = leg.result
            if result is None or result.get("resultType") != "input_required":
                return
            questions = _questions(result)
            with pause():
                if questions:
                    answers = await while_up(self._gone, self._answers(questions, leg, subject))
                else:
                    answers = None
                    await asyncio.sleep(delay)
                    delay = min(delay * 2, _LONGEST_PAUSE)
            follow = FollowUp(of=leg, state=_state(result), responses=answers)
            await self._seal(follow, subject)
            leg = leg.again(follow)
            try:
                await send(leg)
            finally:
                exchange.result, exchange.error = leg.result, leg.error
        if (leg.result or {}).get("resultType") == "input_required":
            raise Stuck(f"it asked back {MAX_ROUNDS} times without coming to an end")

    async def _answers(
        self, questions: Mapping[str, Asked], leg: Exchange, subject: Subject
    ) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        for key, question in questions.items():
            asked = Asked(
                method=question.method,
                params=question.params,
                tool=subject.name,
                decision=leg.decision,
            )
            try:
                answers[key] = await self._answering.answer(asked)
            except Unanswerable as refusal:
                raise Stuck(f"it asked for {asked.method}, and {refusal}") from None
        return answers

    async def _seal(self, follow: FollowUp, subject: Subject) -> None:
        asked = Asked(method="answers", params={}, tool=subject.name, decision=follow.of.decision)
        try:
            await self._answering.seal_round(
                asked, follow.responses or {}, follow.sealed(subject.arguments)
            )
        except Unanswerable as refusal:
            raise Stuck(str(refusal)) from None


def _questions(result: Mapping[str, Any]) -> dict[str, Asked]:
    raw = result.get("inputRequests")
    if raw is None:
        if _state(result) is None:
            raise Stuck("it asked for input without saying which")
        return {}
    if not isinstance(raw, Mapping):
        raise Stuck("it asked for input in a way kage cannot read")
    if len(raw) > MAX_QUESTIONS:
        raise Stuck(f"it asked {len(raw)} questions at once, and the limit is {MAX_QUESTIONS}")
    questions: dict[str, Asked] = {}
    for key, entry in raw.items():
        method = entry.get("method") if isinstance(entry, Mapping) else None
        params = entry.get("params") if isinstance(entry, Mapping) else None
        if not isinstance(method, str) or not isinstance(params, Mapping | None):
            raise Stuck("it asked for input in a way kage cannot read")
        questions[str(key)] = Asked(method=method, params=params or {})
    return questions


def _state(result: Mapping[str, Any]) -> str | None:
    state = result.get("requestState")
    return state if isinstance(state, str) else None
