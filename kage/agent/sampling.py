"""The model of the session, as servers may ask it: one question, one answer, no tools of kage."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from kage.core.errors import KageError
from kage.core.ids import new_id
from kage.core.messages import AssistantMessage
from kage.core.requests import SampleRequest
from kage.providers.base import Finished, ModelRequest
from kage.providers.offline import ID as OFFLINE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from kage.agent.seat import Seat
    from kage.providers.base import ModelEvent

LIMIT = 300.0  # seconds for one answer


class SeatSampler:
    """Implements ``core.requests.Sampler`` over the ``seat``, which the engine sets."""

    def __init__(self) -> None:
        self.seat: Seat | None = None

    @property
    def model(self) -> str:
        """The model that would answer, "" when there is none."""
        model = self.seat.model if self.seat is not None else ""
        return "" if model == OFFLINE else model  # which answers nobody in words

    async def sample(self, request: SampleRequest) -> AssistantMessage:
        """Ask once.

        Raises:
            KageError: no model is connected, it failed, or it took longer than ``LIMIT``.
        """
        if self.seat is None or not self.model:
            raise KageError("No model is connected", fix="Run kage with a model")
        try:
            async with asyncio.timeout(LIMIT):
                provider = await self.seat.provider()
                asked = ModelRequest(
                    message_id=new_id("m"),
                    system=request.system,
                    messages=request.messages,
                    tools=request.tools,
                    max_tokens=request.max_tokens,
                    temperature=request.temperature,
                    stop=request.stop,
                )
                stream = cast("AsyncGenerator[ModelEvent]", provider.stream(asked))
                async with aclosing(stream) as events:
                    async for event in events:
                        if isinstance(event, Finished):
                            return event.message
        except TimeoutError:
            raise KageError(f"The model did not answer within {LIMIT:g} s") from None
        raise KageError("The model's answer broke off")
