"""What a person takes from a server beside tools: a resource, a prompt, values for an argument."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from kage.core.content import Content
from kage.core.errors import ServerError
from kage.core.offers import CompletionWish, FilledPrompt, RefKind
from kage.core.servers import Stage
from kage.mcp.client.asking.reception import VISIT_FIRST, Reception
from kage.mcp.client.asking.rounds import Stuck, Subject
from kage.mcp.client.calling.limits import resting
from kage.mcp.client.offers import entries
from kage.mcp.client.wire.exchange import Exchange
from kage.mcp.client.wire.wash import heavy

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp_types import ClientRequest

Send = Callable[["ClientRequest", Exchange], Awaitable[None]]

COMPLETION_LIMIT = 5.0  # seconds; what comes later is about another word
_NOT_FOUND = (-32002, -32602)  # legacy and modern code for what is not there
_NO_METHOD = -32601
_MAX_URI = 8_192  # characters


class Taking:
    """Requests to one connection that a person makes; each has a deadline and a clear failure.

    Args:
        client: Says what the server can, and holds modern subscriptions.
        send: Sends one request.
        server: Its name, for messages.
        limit: Seconds an answer may take, 0: any time.
        gone: Says why the connection ended, waiting a moment for it; "" when that is not known.
    """

    def __init__(
        self,
        client: Client,
        send: Send,
        *,
        server: str,
        limit: float,
        gone: Callable[[], Awaitable[str]],
    ) -> None:
        self._client = client
        self._send = send
        self._has = client.server_capabilities
        self._server = server
        self._limit = limit
        self._gone = gone
        self.reception: Reception | None = None  # answers what a request asks back

    @property
    def modern(self) -> bool:
        """Whether subscriptions are one stream instead of a request for each resource."""
        return self._client.session.discover_result is not None

    @property
    def completes(self) -> bool:
        """Whether the server answers questions about arguments."""
        return self._has.completions is not None

    @property
    def watches(self) -> bool:
        """Whether the server tells when a resource changes."""
        return self._has.resources is not None and self._has.resources.subscribe is True

    async def read(self, uri: str) -> tuple[Content, ...]:
        """Read a resource.

        Raises:
            ServerError: there is none, the server refused, or it did not answer.
        """
        from mcp_types import ReadResourceRequest, ReadResourceRequestParams

        if self._has.resources is None:
            raise self._error(f"The server {self._server} has no resources")
        what = f"The resource {entries.short(uri)} of server {self._server}"
        if not uri or len(uri) > _MAX_URI:
            raise self._error(f"{what} cannot be read", "its address is empty or too long")
        request = ReadResourceRequest(params=ReadResourceRequestParams(uri=uri))
        raw = await self._ask(request, what, "read", self._limit)
        reading = partial(entries.contents, raw, self._server, uri)
        found = await asyncio.to_thread(reading) if heavy(raw) else reading()
        if found is None:
            raise self._error(f"{what} could not be read", entries.unread(raw, "contents"))
        return found

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> FilledPrompt:
        """Have a prompt filled in.

        Raises:
            ServerError: there is none, the server refused, or it did not answer.
        """
        from mcp_types import GetPromptRequest, GetPromptRequestParams

        if self._has.prompts is None:
            raise self._error(f"The server {self._server} has no prompts")
        what = f"The prompt {entries.short(name)} of server {self._server}"
        params = GetPromptRequestParams(name=name, arguments=dict(arguments) or None)
        raw = await self._ask(GetPromptRequest(params=params), what, "filled in", self._limit)
        reading = partial(entries.filled, raw, self._server, name)
        found = await asyncio.to_thread(reading) if heavy(raw) else reading()
        if found is None:
            raise self._error(f"{what} could not be filled in", entries.unread(raw, "messages"))
        return found

    async def complete(self, wish: CompletionWish) -> tuple[str, ...]:
        """Ask for values of an argument, at most 100; () when the server has none to give.

        Raises:
            ServerError: it refused, or did not answer.
        """
        from mcp_types import (
            CompleteRequest,
            CompleteRequestParams,
            CompletionArgument,
            CompletionContext,
            PromptReference,
            ResourceTemplateReference,
        )

        if not self.completes:
            return ()
        ref: PromptReference | ResourceTemplateReference
        if wish.kind is RefKind.PROMPT:
            ref = PromptReference(name=wish.name)
        else:
            ref = ResourceTemplateReference(uri=wish.name)
        params = CompleteRequestParams(
            ref=ref,
            argument=CompletionArgument(name=wish.argument, value=wish.value),
            context=CompletionContext(arguments=dict(wish.known)) if wish.known else None,
        )
        what = f"The values of {entries.short(wish.argument)} for server {self._server}"
        raw = await self._ask(CompleteRequest(params=params), what, "had", COMPLETION_LIMIT)
        return entries.values(raw)

    async def watch(self, uri: str) -> None:
        """Ask a server of the older era to tell when a resource changes.

        Raises:
            ServerError: it refused, or did not answer.
        """
        from mcp_types import SubscribeRequest, SubscribeRequestParams

        request = SubscribeRequest(params=SubscribeRequestParams(uri=uri))
        await self._ask(request, f"The resource {entries.short(uri)}", "watched", COMPLETION_LIMIT)

    async def unwatch(self, uri: str) -> None:
        """Take :meth:`watch` back.

        Raises:
            ServerError: it refused, or did not answer.
        """
        from mcp_types import UnsubscribeRequest, UnsubscribeRequestParams

        request = UnsubscribeRequest(params=UnsubscribeRequestParams(uri=uri))
        what = f"The resource {entries.short(uri)}"
        await self._ask(request, what, "left unwatched", COMPLETION_LIMIT)

    @asynccontextmanager
    async def listening(self, uris: tuple[str, ...]) -> AsyncIterator[asyncio.Event]:
        """Hold a modern subscription to changes of ``uris``; the event is set once it is over.

        Raises:
            ServerError: the server refused it.
        """
        from mcp import MCPError

        over = asyncio.Event()
        try:
            async with self._client.listen(resource_subscriptions=uris) as events:

                async def follow() -> None:
                    try:
                        async for _ in events:
                            pass  # the tap has told already
                    except (MCPError, RuntimeError):
                        pass  # how it ended does not matter: it is made again
                    finally:
                        over.set()

                following = asyncio.create_task(follow(), name="watched resources")
                try:
                    yield over
                finally:
                    following.cancel()
                    await asyncio.gather(following, return_exceptions=True)
        except (MCPError, RuntimeError, TimeoutError) as error:
            raise self._error("The server watches nothing", entries.short(str(error))) from None

    async def _ask(
        self, request: ClientRequest, what: str, done: str, limit: float
    ) -> Mapping[str, Any]:
        from mcp import MCPError

        exchange = Exchange()
        failed = f"{what} could not be {done}"
        try:
            async with asyncio.timeout(limit if limit > 0 else None) as timer:
                if self.reception is None:
                    await self._send(request, exchange)
                else:
                    await self.reception.converse(
                        partial(self._send, request),
                        exchange,
                        Subject(name=what),
                        partial(resting, timer, limit),
                    )
        except Stuck as stuck:
            raise self._error(failed, str(stuck)) from None
        except TimeoutError:
            why = f"the server did not answer within {limit:g} s"
            raise self._error(failed, why, "Try again, or look at its log.") from None
        except MCPError as error:
            if exchange.error is None:
                why = await self._gone() or "the connection ended"
                raise self._error(failed, why, "Try again once it is back.") from None
            code, said = exchange.error
            if code == VISIT_FIRST and self.reception is not None:
                _, agreed = await self.reception.visit(exchange.error_data, "")
                fix = "Try again once you did." if agreed else ""
                raise self._error(failed, "it wants a page visited first", fix) from None
            raise self._refused(failed, code, said) from error
        except Exception as error:  # boundary: the SDK raises what it likes for an odd answer
            if exchange.result is None:
                raise self._error(failed, f"the answer cannot be read: {error}") from None
        return exchange.result or {}

    def _refused(self, failed: str, code: int, message: str) -> ServerError:
        said = entries.short(message, 500) or "it gave no reason"
        if code == _NO_METHOD:
            return self._error(failed, "the server does not know how")
        if code in _NOT_FOUND:
            fix = f"See what there is: kage mcp resources {self._server}"
            if "prompt" in failed.lower():
                fix = f"See what there is and what it takes: kage mcp prompts {self._server}"
            return self._error(failed, f"the server says: {said} (error {code})", fix)
        return self._error(failed, f"the server says: {said} (error {code})")

    def _error(self, what: str, why: str = "", fix: str = "") -> ServerError:
        return ServerError(what, server=self._server, stage=Stage.CALL.value, why=why, fix=fix)
