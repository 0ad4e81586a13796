"""Calls of tools past the SDK's transport: one POST each, its answer handed straight to the tap.

What goes along with a call is learned from the SDK's own request for the list of tools. Imports
httpx2 and the SDK: import it late.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Protocol

import httpx2
from anyio import ClosedResourceError
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_NAME_HEADER, encode_header_value
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types.jsonrpc import (
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from kage.mcp.client.transport.answers import AnswerStream
from kage.mcp.client.transport.base import ANSWER_LOST
from kage.mcp.client.transport.body import Unusable
from kage.mcp.client.transport.carrier import kind_of
from kage.mcp.client.transport.errand import STREAM_LIMIT, Errand, Kind, Term
from kage.mcp.client.transport.parse import INVALID_ANSWER, answer_error, parse
from kage.mcp.client.transport.replies import EVENTS, Desk, Replies
from kage.mcp.client.transport.sse import Event
from kage.mcp.client.transport.writing import encoded

_RETURNS = 2  # times in a row a broken stream is asked for again in vain
_RETRY = 1.0  # seconds before that, unless the server names a time
_TAIL = 0.2  # seconds a stream may take to end once the answer came, else its connection is closed
_OWN = ("content-length", "cookie", "mcp-method", "mcp-name")  # of one request
_BROKEN = (httpx2.HTTPError, httpx2.StreamError, Unusable, OSError)  # a timeout is an OSError


class Way(Protocol):
    """The HTTP client, as far as calls need it."""

    cookies: httpx2.Cookies

    async def deliver(self, errand: Errand, request: httpx2.Request) -> httpx2.Response:
        """Send a request, its body still to be read."""
        ...

    async def opened(self, errand: Errand, request: httpx2.Request) -> httpx2.Response:
        """Open a stream of events."""
        ...


@dataclass(slots=True)
class _Place:
    """Where in a stream of events a call is."""

    id: bytes | None
    wait: float  # seconds until one may come back

    def note(self, event: Event) -> None:
        self.id = event.id or self.id
        if event.retry is not None:
            self.wait = event.retry / 1000


class Posts:
    """The calls of one connection over streamable HTTP."""

    def __init__(self, desk: Desk, way: Way) -> None:
        self._desk = desk
        self._way = way
        self._replies = Replies(desk)
        self._url: httpx2.URL | None = None
        self._headers = httpx2.Headers()
        self._modern = False
        self._calls: dict[int | str | None, asyncio.Task[None]] = {}
        self._closed = False

    @property
    def ready(self) -> bool:
        """Whether it is known what goes along with a call."""
        return self._url is not None

    def learn(self, request: httpx2.Request) -> None:
        """Look at a request of the SDK, made for the list of tools."""
        told = request.headers.multi_items()
        self._modern = MCP_METHOD_HEADER in request.headers
        self._headers = httpx2.Headers(
            [
                (name, value)
                for name, value in told
                if name not in _OWN and not name.startswith("mcp-param-")
            ]
        )
        self._url = request.url

    def take(self, item: SessionMessage) -> bool:
        """Send a call, or end one in the way of its era; False: the message is the SDK's to send.

        Raises:
            anyio.ClosedResourceError: the connection is over.
        """
        match item.message:
            case JSONRPCRequest(method="tools/call") if self.ready:
                if self._closed:
                    raise ClosedResourceError
                self._send(item)
                return True
            case JSONRPCNotification(method="notifications/cancelled", params=params):
                call = self._calls.get((params or {}).get("requestId")) if self._modern else None
                if call is not None:
                    call.cancel()  # closing the stream says it
                return call is not None
        return False

    async def close(self) -> None:
        """Give up what is under way."""
        self._closed = True
        calls = tuple(self._calls.values())
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    def _send(self, item: SessionMessage) -> None:
        errand = self._desk.errand("POST", session="mcp-session-id" in self._headers)
        call = asyncio.create_task(self._call(errand, item), name="call over HTTP")
        self._calls[errand.id] = call
        call.add_done_callback(lambda _: self._calls.pop(errand.id, None))

    async def _call(self, errand: Errand, item: SessionMessage) -> None:
        try:
            response = await self._way.deliver(errand, self._request(item))
            try:
                answer = await self._replies.of(errand, response)
                if answer is None:
                    await self._listen(errand, response)
                    return
            finally:
                await response.aclose()
        except Exception as error:  # boundary: becomes the answer of this one call
            answer = self._replies.failed(errand, error)
        await self._desk.take(SessionMessage(answer))

    def _request(self, item: SessionMessage) -> httpx2.Request:
        assert self._url is not None and isinstance(item.message, JSONRPCRequest)
        headers = self._headers
        marked = item.metadata.headers if isinstance(item.metadata, ClientMessageMetadata) else None
        if self._modern:
            name = encode_header_value(str((item.message.params or {}).get("name")))
            own = {MCP_METHOD_HEADER: "tools/call", MCP_NAME_HEADER: name, **(marked or {})}
            headers = headers.copy()
            headers.update(own)
        cookies = self._way.cookies if len(self._way.cookies.jar) else None
        return httpx2.Request(
            "POST", self._url, headers=headers, cookies=cookies, content=encoded(item)
        )

    # ---- answers over a stream of events

    async def _listen(self, errand: Errand, response: httpx2.Response) -> None:
        """Hand over what a stream brings until the answer came; come back where it can be had."""
        assert errand.id is not None
        place, failures, stream = _Place(id=None, wait=_RETRY), 0, response
        while not await self._heard(errand, stream, place):
            found: httpx2.Response | None = None
            while found is None:
                if errand.idle:
                    return
                if place.id is None or failures == _RETURNS:
                    text = "its answer broke off before its end"
                    await self._desk.take(answer_error(errand.id, text, ANSWER_LOST))
                    return
                await asyncio.sleep(place.wait)
                found = await self._returned(errand, place.id)
                failures = failures + 1 if found is None else 0
            stream = found

    async def _heard(self, errand: Errand, response: httpx2.Response, place: _Place) -> bool:
        """Read one stream; False: it ended before the answer came."""
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        stream = AnswerStream(
            response.stream, request=errand.id, most=self._desk.most, stray=self._desk.stray
        )
        try:
            async with aclosing(stream.events()) as events:
                async for event in events:
                    place.note(event)
                    if event.data and await self._passed_on(errand, event):
                        await _ended(events)
                        return True
        except _BROKEN:
            pass  # as if it had ended
        finally:
            await response.aclose()
        return False

    async def _passed_on(self, errand: Errand, event: Event) -> bool:
        """Hand over the messages of an event; True: the answer was among them."""
        assert errand.id is not None
        data = b" ".join(event.data)
        if not data.strip():
            return False  # it only names a place to come back to
        items = [item for item in parse(data) if isinstance(item, SessionMessage)]
        if not items:
            items = [answer_error(errand.id, "it is no valid JSON-RPC message", INVALID_ANSWER)]
        complete = False
        for item in items:
            message = item.message
            if isinstance(message, JSONRPCResponse | JSONRPCError):
                same = message.id == errand.id and type(message.id) is type(errand.id)
                if not same and message.id is not None:
                    self._desk.stray()
                    continue
                complete = True
                message = message.model_copy(update={"id": errand.id})
            await self._desk.take(SessionMessage(message))
        return complete

    async def _returned(self, errand: Errand, last: bytes) -> httpx2.Response | None:
        """Ask for the rest of a stream; None: it could not be had."""
        assert self._url is not None
        again = Errand(
            kind=Kind.STREAM,
            term=Term(STREAM_LIMIT),
            id=errand.id,
            session=errand.session,
            exchange=errand.exchange,
        )
        headers = self._headers.copy()
        headers.update({"accept": EVENTS, "cache-control": "no-store"})
        headers["last-event-id"] = last.decode("ascii")
        try:
            response = await self._way.opened(
                again, httpx2.Request("GET", self._url, headers=headers)
            )
        except Exception:  # boundary: the client told the link what it has to know
            return None
        if response.is_success and kind_of(response.headers) == EVENTS:
            return response
        await response.aclose()
        return None


async def _ended(events: AsyncIterator[Event]) -> None:
    """Let a stream end, so that its connection can be used again."""
    with suppress(*_BROKEN):
        async with asyncio.timeout(_TAIL):
            async for _ in events:
                pass
