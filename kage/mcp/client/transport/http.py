"""The link to a server behind a url: streamable HTTP, or the older one with a stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kage.core.errors import ServerError
from kage.core.servers import Fault, Stage
from kage.mcp.client import faults
from kage.mcp.client.calling.definitions import Listing
from kage.mcp.client.faults import StartFailed
from kage.mcp.client.servers.recipe import Recipe
from kage.mcp.client.services import Services
from kage.mcp.client.transport.address import Address
from kage.mcp.client.transport.base import End, Streams
from kage.mcp.client.transport.dynamic import HeaderSource
from kage.mcp.client.transport.errand import Errand, Kind, make_errand
from kage.mcp.client.transport.judge import Judge
from kage.mcp.client.transport.proxies import proxy_for

if TYPE_CHECKING:
    import httpx2
    from mcp.shared.message import SessionMessage

    from kage.mcp.client.transport.guard import GuardedClient
    from kage.mcp.client.transport.mail import Arrivals
    from kage.mcp.client.transport.params import ParamHeaders

_CONNECT = 30.0  # seconds a connection may take to be made, where the entry allows more
_LEAVE = 2.5  # seconds the session may take to be ended


class HttpLink:
    """One connection over HTTP; ``misses``: a single unanswered check may be the network's.

    Args:
        old: Speak HTTP+SSE, with two endpoints, instead of streamable HTTP.
    """

    misses = 2
    pid = None
    stalled = False
    probe_wait = 5.0

    def __init__(self, recipe: Recipe, services: Services, *, old: bool) -> None:
        assert isinstance(recipe.target, Address), "the entry has a url"
        self._spec = recipe.spec
        self._address = recipe.target
        self._services = services
        self.old = old
        self.most = recipe.spec.max_message_bytes
        written = {name.lower() for name in recipe.target.headers}
        parts = urlsplit(recipe.target.url)
        named = bool(parts.username or parts.password)
        self._authorised = named or "authorization" in written
        self.source = HeaderSource(
            recipe.target,
            server=recipe.spec.name,
            spawner=services.spawner,
            secret=services.redactor.add,
        )
        self.judge = Judge(
            server=recipe.spec.name,
            url=recipe.target.url,
            authorised=self._authorised,
            named=named,
            proxy=proxy_for(parts.scheme, parts.hostname or "", parts.port, recipe.target.proxies),
            commanded=bool(recipe.target.command),
        )
        self._signing: httpx2.Auth | None = None
        self._arrivals: Arrivals | None = None
        self._params: ParamHeaders | None = None
        self._end: End | None = None
        self._ended = asyncio.Event()
        self._silent = False
        self._opened = False  # the handshake is over
        self._entered = False
        self._entering = asyncio.timeout(None)  # the SDK waits for ever for an endpoint
        self._left = asyncio.Event()

    @property
    def strays(self) -> int:
        """Messages that could not be read."""
        return self._arrivals.strays if self._arrivals is not None else 0

    async def open(self) -> None:
        """Ask the entry's ``headers_command``, where it has one; nothing is connected yet.

        Raises:
            StartFailed: it failed, a header cannot be sent, or signing in misses a variable.
        """
        try:
            await self.source.renew(self.source.round)
            for name, value in self.source.now().items():
                if not value.isascii():
                    raise ServerError(
                        f"{self._spec.name} cannot connect: the header {name} holds a character "
                        "a header cannot carry",
                        server=self._spec.name,
                        stage=Stage.CONFIG,
                        fix=f"Mend headers of [mcp.servers.{self._spec.name}]",
                    )
        except ServerError as error:
            raise StartFailed(faults.to_fault(error, stage=Stage.CONFIG)) from None
        try:
            self._signing = self._auth()
        except ServerError as error:
            fault = faults.to_fault(error, stage=Stage.CONFIG)
            raise StartFailed(fault, hopeless=True) from None

    def streams(self) -> Streams:
        """Connect when entered; leaving ends the session."""
        return self._streams()

    def sift(self, listing: Listing, *, modern: bool) -> Listing:
        """Leave out the tools whose arguments ask for headers in a way that is forbidden."""
        if not modern:
            return listing
        from kage.mcp.client.transport.params import ParamHeaders

        self._params = self._params or ParamHeaders()
        return self._params.sift(listing)

    async def over(self, silent: asyncio.Event) -> None:
        """Wait until something ended it, or its streams did."""
        ended = asyncio.ensure_future(self._ended.wait())
        quiet = asyncio.ensure_future(silent.wait())
        try:
            await asyncio.wait([ended, quiet], return_when=asyncio.FIRST_COMPLETED)
            self._silent = True
        finally:
            ended.cancel()
            quiet.cancel()

    def explain(self, stage: Stage) -> End | None:
        """Say what ended it; where its streams just ended at the start, the SDK knows more."""
        if self._end is not None or not self._silent or stage is not Stage.EXIT:
            return self._end
        name = self._spec.name
        return End(
            fault=Fault(
                stage=stage,
                what=f"The connection to the server {name} ended",
                why="it closed its stream of events" if self.old else "the connection broke off",
                fix=f"Restart it: /mcp restart {name} in the chat",
            )
        )

    def last_lines(self) -> tuple[str, ...]:
        """Give nothing: there is no stderr."""
        return ()

    async def close(self) -> None:
        """Wait until the session is ended and nothing is connected any more."""
        if self._entered and not self._left.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_LEAVE):
                    await self._left.wait()

    # ---- what its client asks

    def errand(self, http_method: str, *, session: bool) -> Errand:
        """Tell what a request is for."""
        errand = make_errand(
            http_method,
            opening=not self._opened,
            session=session,
            longest=self._spec.tool_max_time,
        )
        if errand.kind is Kind.STREAM and self.old:
            errand.opening = not self._opened
        return errand

    def ended(self, end: End) -> None:
        """Take note of why it is over; the first reason counts."""
        if self._end is None:
            self._end = replace(end, fault=self._washed(end.fault))
            self._ended.set()
            if not self._entering.expired():
                with suppress(RuntimeError):  # it is not being entered, or it was
                    self._entering.reschedule(asyncio.get_running_loop().time())

    def inject(self, item: SessionMessage) -> None:
        """Hand a message to the tap as if the server had sent it."""
        if self._arrivals is not None:
            self._arrivals.inject(item)

    async def take(self, item: SessionMessage) -> None:
        """Hand over a message the server sent; waits while nobody takes it."""
        if self._arrivals is not None:
            await self._arrivals.take(item)

    def stray(self) -> None:
        """Count what was no message."""
        if self._arrivals is not None:
            self._arrivals.strays += 1

    def departs(self, item: SessionMessage) -> SessionMessage:
        """Give a message as it goes out; the first after the handshake ends that."""
        if getattr(item.message, "method", "") not in ("server/discover", "initialize"):
            self._opened = True
        return self._params.marked(item) if self._params is not None else item

    # ---- inside

    def _washed(self, fault: Fault) -> Fault:
        """Take the entry's secrets out: a server may send back what it was sent."""
        redact = self._services.redactor
        return replace(fault, what=redact(fault.what), why=redact(fault.why), fix=redact(fault.fix))

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[tuple[Any, Any]]:
        from kage.mcp.client.transport.carrier import Carrier
        from kage.mcp.client.transport.guard import GuardedClient
        from kage.mcp.client.transport.mail import Arrivals, Departures
        from kage.mcp.client.transport.posts import Posts

        self._entered = True
        try:
            carrier = Carrier(
                self._address,
                headers=self.source.now,
                most=self.most,
                connect=min(_CONNECT, self._spec.timeout),
            )
            client = GuardedClient(self, carrier, auth=self._signing)
            posts = None if self.old else Posts(self, client)
            client.listing = posts.learn if posts is not None else None
            async with self._transport(client) as (read, write):
                self._arrivals = Arrivals(read)
                try:
                    yield self._arrivals.start(), Departures(write, self.departs, posts)
                finally:
                    if posts is not None:
                        await posts.close()
                    await self._arrivals.close()
        finally:
            self._left.set()

    @asynccontextmanager
    async def _transport(self, client: GuardedClient) -> AsyncIterator[tuple[Any, Any]]:
        """Enter the SDK's transport and, where that does not do it, the client."""
        if self.old:
            async with AsyncExitStack() as stack:
                async with self._entering:
                    pair = await stack.enter_async_context(self._older(client))
                yield pair
            return
        from mcp.client.streamable_http import streamable_http_client

        transport = streamable_http_client(
            self._address.url, http_client=client, max_sse_event_size=None
        )
        async with client, transport as pair:
            yield pair

    def _older(self, client: GuardedClient) -> AbstractAsyncContextManager[Any]:
        from mcp.client.sse import sse_client

        def factory(
            headers: object = None, timeout: object = None, auth: object = None
        ) -> httpx2.AsyncClient:
            return client  # what it is told is ours to decide

        return sse_client(self._address.url, httpx_client_factory=factory)

    def _auth(self) -> httpx2.Auth | None:
        """Give what signs in; a header or a user in the entry is the person's own choice."""
        logins = self._services.logins
        explicit = self._authorised or any(
            name.lower() == "authorization" for name in self.source.now()
        )
        if logins is None or explicit or self._spec.auth == "none":
            return None
        return logins.auth(self._spec, self._address.url)
