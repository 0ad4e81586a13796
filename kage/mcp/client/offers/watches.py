"""Which resources of one server are watched for changes, over all its connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from kage.core.errors import ServerError

MAX_WATCHED = 50  # resources of one server; the oldest one makes room
_FIRST_PAUSE = 1.0  # seconds before a broken subscription is made again
_MAX_PAUSE = 60.0  # seconds


class Watchable(Protocol):
    """What is needed of a connection."""

    @property
    def watches(self) -> bool:
        """Whether the server tells when a resource changes."""
        ...

    @property
    def modern(self) -> bool:
        """Whether subscriptions are one stream instead of a request for each resource."""
        ...

    def listening(self, uris: tuple[str, ...]) -> AbstractAsyncContextManager[asyncio.Event]:
        """Hold a modern subscription; the event is set when the server ended it."""
        ...

    async def watch(self, uri: str) -> None:
        """Subscribe to one resource, the older way."""
        ...

    async def unwatch(self, uri: str) -> None:
        """End the older kind of subscription."""
        ...


class Watches:
    """Remembers what is watched and tells each change once.

    Args:
        told: Called with the address of a watched resource that changed; it is told again only
            after it was added again.
    """

    def __init__(self, told: Callable[[str], None]) -> None:
        self._told = told
        self._uris: dict[str, bool] = {}  # address: a change was told
        self._followers: set[asyncio.Event] = set()  # one for each live connection

    @property
    def uris(self) -> tuple[str, ...]:
        """What is watched, oldest first."""
        return tuple(self._uris)

    def add(self, uri: str) -> None:
        """Watch a resource; one that was watched begins anew."""
        known = self._uris.pop(uri, None) is not None
        self._uris[uri] = False
        if len(self._uris) > MAX_WATCHED:
            del self._uris[next(iter(self._uris))]
            known = False
        if not known:
            self._changed()

    def remove(self, uri: str) -> None:
        """Stop watching a resource."""
        if self._uris.pop(uri, None) is not None:
            self._changed()

    def clear(self) -> None:
        """Stop watching everything."""
        if self._uris:
            self._uris.clear()
            self._changed()

    def updated(self, uri: str) -> None:
        """A server says that a resource, or one below a watched one, changed."""
        for watched, told in tuple(self._uris.items()):
            below = uri.startswith(watched if watched.endswith("/") else f"{watched}/")
            if not told and (uri == watched or below):
                self._uris[watched] = True
                self._told(watched)

    async def run(self, connection: Watchable) -> None:
        """Keep ``connection`` subscribed to what is watched, until cancelled."""
        if not connection.watches:
            return
        differs = asyncio.Event()
        self._followers.add(differs)
        try:
            if connection.modern:
                await self._listen(connection, differs)
            else:
                await self._subscribe(connection, differs)
        finally:
            self._followers.discard(differs)

    def _changed(self) -> None:
        for differs in self._followers:
            differs.set()

    async def _subscribe(self, connection: Watchable, differs: asyncio.Event) -> None:
        held: set[str] = set()
        while True:
            differs.clear()
            wanted = tuple(self._uris)
            for uri in held.difference(wanted):
                held.discard(uri)
                with contextlib.suppress(ServerError):
                    await connection.unwatch(uri)
            for uri in wanted:
                if uri not in held:
                    held.add(uri)  # a refusal is not asked for again
                    with contextlib.suppress(ServerError):
                        await connection.watch(uri)
            await differs.wait()

    async def _listen(self, connection: Watchable, differs: asyncio.Event) -> None:
        """Hold one stream for everything that is watched; a change of that replaces it."""
        pause = _FIRST_PAUSE
        while True:
            differs.clear()
            wanted = tuple(self._uris)
            if not wanted:
                await differs.wait()
                continue
            began = asyncio.get_running_loop().time()
            with contextlib.suppress(ServerError):
                async with connection.listening(wanted) as over:
                    await _either(over, differs)
            if differs.is_set() or asyncio.get_running_loop().time() - began > _MAX_PAUSE:
                pause = _FIRST_PAUSE
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await differs.wait()
            pause = min(pause * 2, _MAX_PAUSE)


async def _either(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
