"""What one server offers beside tools, through all its connections: lists, requests, watches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from kage.config.schema import ServerSpec
from kage.core.content import Content
from kage.core.offers import CompletionWish, FilledPrompt, Offers, Provenance
from kage.core.servers import ServerState
from kage.mcp.client import faults
from kage.mcp.client.connections.connection import Connection
from kage.mcp.client.faults import StartFailed
from kage.mcp.client.offers import entries
from kage.mcp.client.offers.taking import Taking
from kage.mcp.client.offers.watches import Watches

T = TypeVar("T")

_PATIENCE = 15.0  # seconds a server that is coming up is waited for
_HELD = "watched resources"


class Rest(Protocol):
    """Keeps a server from falling asleep."""

    def using(self) -> AbstractContextManager[None]:
        """Keep it awake for the time of a block."""
        ...

    def hold(self, key: str) -> None:
        """Keep it awake until released."""
        ...

    def release(self, key: str) -> None:
        """Let go."""
        ...


class Home(Protocol):
    """What is needed of a server; ``Server`` is one."""

    spec: ServerSpec
    settled: asyncio.Event

    @property
    def rest(self) -> Rest:
        """When it may sleep."""
        ...

    @property
    def state(self) -> ServerState:
        """How it is doing."""
        ...

    @property
    def connection(self) -> Connection | None:
        """The connection that serves."""
        ...

    @property
    def offers(self) -> Mapping[str, Any]:
        """What it offers, raw, also while it sleeps."""
        ...

    async def reach(self) -> Connection:
        """Give the live connection, starting a server that sleeps."""
        ...


class Beside:
    """One server's prompts, resources and templates.

    Args:
        server: The server.
        announce: Called when its lists changed.
    """

    def __init__(self, server: Home, announce: Callable[[], None]) -> None:
        self.updated: Callable[[str], None] = _nobody  # told the address of a watched resource
        self._server = server
        self._announce = announce
        self._watches = Watches(self._told)
        self._asleep: tuple[Mapping[str, Any], Offers] | None = None  # typed once

    @property
    def watched(self) -> tuple[str, ...]:
        """The addresses that are watched."""
        return self._watches.uris

    def offers(self) -> Offers:
        """Give what it offers, typed; nothing while it is down."""
        live = self._server.connection
        if live is not None and live.offer_lists is not None:
            return live.offer_lists.offers()
        raw = self._server.offers
        if not raw:
            return Offers(server=self._server.spec.name)
        if self._asleep is None or self._asleep[0] is not raw:
            has = raw.get("capabilities", {})
            resources = has.get("resources") if isinstance(has, Mapping) else None
            typed = entries.read(
                self._server.spec.name,
                raw,
                completes=isinstance(has, Mapping) and has.get("completions") is not None,
                watches=isinstance(resources, Mapping) and resources.get("subscribe") is True,
            )
            self._asleep = (raw, typed)
        return self._asleep[1]

    def provenance(self) -> Provenance:
        """Say which connection of which entry would answer."""
        live = self._server.connection
        return Provenance(
            server=self._server.spec.name,
            origin=self._server.spec.origin,
            entry_hash=live.recipe.entry if live is not None else "",
            connection=live.id if live is not None else "",
        )

    async def tend(self, connection: Connection) -> None:
        """Keep the lists of ``connection`` fresh and its watches made, until it is closed."""
        lists = connection.offer_lists
        if lists is None:
            return
        lists.updated = self._watches.updated
        tasks = (
            asyncio.create_task(lists.tend(self._announce), name="offers"),
            asyncio.create_task(self._watches.run(lists.take), name="watches"),
        )
        try:
            await connection.closed.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def listed(self) -> Offers:
        """Wait until the lists were fetched, as far as they can be, and give them."""
        live = self._server.connection
        if live is not None and live.offer_lists is not None:
            await live.offer_lists.refresh()
        return self.offers()

    async def read(self, uri: str) -> tuple[Content, ...]:
        """Read a resource; a server that sleeps is started.

        Raises:
            ServerError: it is not up, or the resource could not be had.
        """
        return await self._with(lambda take: take.read(uri))

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> FilledPrompt:
        """Have a prompt filled in; a server that sleeps is started.

        Raises:
            ServerError: it is not up, or the prompt could not be had.
        """
        return await self._with(lambda take: take.prompt(name, arguments))

    async def complete(self, wish: CompletionWish) -> tuple[str, ...]:
        """Ask for values of an argument; a server that is not up has none.

        Raises:
            ServerError: it refused, or did not answer.
        """
        live = self._server.connection
        if live is None or live.offer_lists is None:
            return ()
        with self._server.rest.using():
            return await live.offer_lists.take.complete(wish)

    def watch(self, uri: str) -> None:
        """Tell ``updated`` when the resource changes; it does not fall asleep meanwhile."""
        if self.offers().watches:
            self._watches.add(uri)
            self._server.rest.hold(_HELD)

    def unwatch(self, uri: str) -> None:
        """Take :meth:`watch` back."""
        self._watches.remove(uri)
        if not self._watches.uris:
            self._server.rest.release(_HELD)

    async def _with(self, work: Callable[[Taking], Awaitable[T]]) -> T:
        name = self._server.spec.name
        with self._server.rest.using():
            try:
                if self._server.connection is None and self._server.state is ServerState.CONNECTING:
                    await self._arrival()
                live = await self._server.reach()
            except StartFailed as error:
                raise faults.to_error(name, error.fault) from None
            if live.offer_lists is None:
                fault = faults.down(name, self._server.state)
                raise faults.to_error(name, fault)
            return await work(live.offer_lists.take)

    async def _arrival(self) -> None:
        """Wait a while for a server that is coming up; how that went is seen after it."""
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._server.settled.wait()
        except TimeoutError:
            pass  # not up yet, and reaching it says so

    def _told(self, uri: str) -> None:
        self.updated(uri)


def _nobody(uri: str) -> None:
    pass
