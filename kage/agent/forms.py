"""What servers ask the person: put to whoever listens, answered by command, withdrawn by cancel."""

from __future__ import annotations

import asyncio

from kage.core.events import Event, Publish, RequestCompleted, RequestReceived, RequestSettled
from kage.core.requests import Action, RequestReply, ServerRequest


def _nobody(event: Event) -> None:
    pass


class Inquiries:
    """The ``Person`` of an engine whose front end has one."""

    def __init__(self, publish: Publish = _nobody) -> None:
        self._publish = publish
        self._open: dict[str, asyncio.Future[RequestReply]] = {}

    async def answer(self, request: ServerRequest) -> RequestReply:
        """Publish ``request`` and wait for ``reply``; cancelling withdraws it."""
        waiting: asyncio.Future[RequestReply] = asyncio.get_running_loop().create_future()
        self._open[request.id] = waiting
        self._publish(RequestReceived(request=request))
        action: Action | None = None
        try:
            reply = await waiting
            action = reply.action
            return reply
        finally:
            del self._open[request.id]
            self._publish(RequestSettled(request_id=request.id, action=action))

    def reply(self, request_id: str, reply: RequestReply) -> bool:
        """Hand over the person's answer; False when the question is no longer open."""
        waiting = self._open.get(request_id)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(reply)
        return True

    def completed(self, server: str, request_id: str) -> None:
        """Tell that what the person did in the browser reached the server."""
        self._publish(RequestCompleted(server=server, request_id=request_id))
