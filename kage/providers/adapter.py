"""What both wire formats share: ask, learn from a refusal, ask again in another form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import ClassVar

from kage.core.errors import ProviderError, UnknownModel
from kage.core.messages import AssistantMessage, Part, Stop
from kage.core.usage import Usage
from kage.providers.base import Finished, ModelEvent, ModelInfo, ModelRequest
from kage.providers.errors import Target
from kage.providers.lessons import Lessons
from kage.providers.listing import suggest
from kage.providers.projection import Projections
from kage.providers.wire import Wire


class Adapter(ABC):
    """One model behind an endpoint."""

    kind: ClassVar[str]  # of the endpoint, as in ``[providers.<name>]``

    def __init__(self, info: ModelInfo, target: Target, headers: Mapping[str, str]) -> None:
        self._info = info
        self._target = target
        self._wire = Wire(target, headers)
        self._projections = Projections()
        self._lessons = Lessons(self._projections)

    @property
    def info(self) -> ModelInfo:
        """The model behind it."""
        return self._info

    async def close(self) -> None:
        """Let go of connections."""
        await self._wire.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Ask once; a form the endpoint does not take is changed and sent again.

        Raises:
            ProviderError: one of its subclasses where the cause is known.
        """
        while True:
            begun = False
            try:
                async with aclosing(self._once(request)) as events:
                    async for event in events:
                        begun = True
                        yield event
                return
            except ProviderError as error:
                if not begun and self._adapt(error, request):
                    continue
                if isinstance(error, UnknownModel):
                    await suggest(error, self._wire, self._info.name, kind=self.kind)
                raise self._explained(error) from error.__cause__

    def _finished(
        self, request: ModelRequest, parts: tuple[Part, ...], stop: Stop, usage: Usage
    ) -> Finished:
        """Make the end of a stream out of what the reply came to."""
        message = AssistantMessage(
            id=request.message_id,
            parts=self._projections.restore(parts),
            model=self._info.id,
            stop=stop,
            usage=usage,
        )
        return Finished(message)

    @abstractmethod
    def _once(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Send the request in the form that is known to work so far."""

    @abstractmethod
    def _adapt(self, error: ProviderError, request: ModelRequest) -> bool:
        """Learn from a refusal; each lesson is learnt once, so this ends."""

    def _explained(self, error: ProviderError) -> ProviderError:
        """Add what to do to refusals that have one cause."""
        return error
