"""The model that answers: chosen at the start, exchanged by command."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kage.agent.parts import ModelMaker
from kage.core.errors import KageError
from kage.core.events import ModelChanged, Publish
from kage.providers.base import ModelInfo, Provider


class Seat:
    """Holds one provider; ``changed`` is told the id of each model that takes the seat."""

    def __init__(
        self, models: ModelMaker, publish: Publish, *, changed: Callable[[str], None]
    ) -> None:
        self._models = models
        self._publish = publish
        self._changed = changed
        self._ready = asyncio.Event()
        self._provider: Provider | None = None
        self._retired: list[Provider] = []
        self._missing: KageError | None = None  # why nobody took the seat
        self.model = ""

    @property
    def info(self) -> ModelInfo | None:
        """What is known of the model, None while nobody sits there."""
        return self._provider.info if self._provider is not None else None

    async def choose(self, asked: str, last: str) -> None:
        """Take ``asked``, else the ``last`` one the session used, else what is at hand.

        Raises:
            KageError: the model asked for cannot be had, or the session's own cannot (then the
                one at hand answers).
        """
        try:
            if asked:
                self.take(asked, "you asked for it")
                return
            trouble: KageError | None = None
            if last:
                try:
                    self.take(last, "the session used it")
                    return
                except KageError as error:
                    trouble = error
            model, reason = await self._models.choose()
            if self._provider is None:  # else the person chose meanwhile
                self.take(model, reason)
            if trouble is not None:
                raise trouble
        except KageError as error:
            self._missing = error
            raise
        finally:
            self._ready.set()

    def take(self, model: str, reason: str) -> None:
        """Let ``model`` answer from the next turn on.

        Raises:
            ProviderError: there is none, or its key is missing; the old one stays.
        """
        provider = self._models.create(model)
        if self._provider is not None:
            self._retired.append(self._provider)
        self._provider = provider
        self.model = provider.info.id
        self._changed(self.model)
        self._publish(ModelChanged(model=self.model, reason=reason))

    async def provider(self) -> Provider:
        """Wait for the choice and give the provider.

        Raises:
            KageError: nobody sits there; says why.
        """
        await self._ready.wait()
        if self._provider is None:
            fix = "Choose one with /model or --model."
            raise self._missing or KageError("No model is connected", fix=fix)
        return self._provider

    async def release(self, *, everything: bool = False) -> None:
        """Close the connections of models that gave up the seat, or of all."""
        retired, self._retired = self._retired, []
        if everything and self._provider is not None:
            retired.append(self._provider)
            self._provider = None
        for provider in retired:
            await provider.close()
