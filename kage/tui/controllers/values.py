"""Values of arguments, asked of servers once typing pauses: one question at a time, remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kage.core.offers import CompletionWish


PAUSE = 0.15  # seconds without a key before a server is asked
_MAX_KEPT = 200  # answers


class Values:
    """Asks and remembers.

    Args:
        ask: Asks a server.
        arrived: Called when an answer is there.
        spawn: Runs work beside everything else.
    """

    def __init__(
        self,
        ask: Callable[[CompletionWish], Awaitable[tuple[str, ...]]],
        *,
        arrived: Callable[[], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._ask = ask
        self._arrived = arrived
        self._spawn = spawn
        self._kept: dict[tuple[object, ...], tuple[str, ...]] = {}
        self._wish: CompletionWish | None = None
        self._asking: asyncio.Task[tuple[str, ...]] | None = None

    def known(self, wish: CompletionWish) -> tuple[str, ...]:
        """Give the values that are known; () while they are asked for."""
        return self._kept.get(_key(wish), ())

    def want(self, wish: CompletionWish | None) -> None:
        """Ask for these values soon; what was asked before is asked no longer."""
        if wish is not None and self._wish is not None and _key(wish) == _key(self._wish):
            return
        self._wish = wish
        if self._asking is not None:
            self._asking.cancel()
        if wish is not None and _key(wish) not in self._kept:
            self._spawn(self._fetch(wish))

    def forget(self) -> None:
        """Forget every answer: a server offers something else."""
        self._kept.clear()

    async def _fetch(self, wish: CompletionWish) -> None:
        await asyncio.sleep(PAUSE)
        if self._wish is not wish:
            return
        self._asking = asking = asyncio.ensure_future(self._ask(wish))
        try:
            await asyncio.wait([asking])
        finally:
            asking.cancel()
        if asking.cancelled() or self._wish is not wish:
            return
        while len(self._kept) >= _MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[_key(wish)] = asking.result()
        self._arrived()


def _key(wish: CompletionWish) -> tuple[object, ...]:
    known = tuple(sorted(wish.known.items()))
    return (wish.server, wish.kind, wish.name, wish.argument, wish.value, known)
