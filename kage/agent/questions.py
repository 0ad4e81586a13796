"""Open questions of the gate: put to whoever listens, answered by command, withdrawn by cancel."""

from __future__ import annotations

import asyncio

from kage.core.events import ApprovalRequested, ApprovalSettled, Publish
from kage.core.gate import Question, Reply


class Questions:
    """The ``Asker`` of an engine whose front end has a person."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._open: dict[str, asyncio.Future[Reply]] = {}

    async def ask(self, question: Question) -> Reply:
        """Publish ``question`` and wait for ``answer``; cancelling withdraws it."""
        waiting: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._open[question.id] = waiting
        self._publish(ApprovalRequested(question=question))
        reply: Reply | None = None
        try:
            reply = await waiting
            return reply
        finally:
            del self._open[question.id]
            self._publish(ApprovalSettled(question_id=question.id, reply=reply))

    def answer(self, question_id: str, reply: Reply) -> bool:
        """Hand over the person's answer; False when the question is no longer open."""
        waiting = self._open.get(question_id)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(reply)
        return True
