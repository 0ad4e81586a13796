"""The HTTP client below the SDK's transports: what goes wrong with one request stays with it.

The SDK ends the whole connection when a request raises. Here a request always gets an answer of
the protocol, if need be one that says what happened. Imports httpx2 and the SDK: import it late.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Protocol

import httpx2
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import JSONRPCError, JSONRPCResponse

import kage
from kage.mcp.client.transport.answers import AnswerStream
from kage.mcp.client.transport.base import End
from kage.mcp.client.transport.body import read_some
from kage.mcp.client.transport.carrier import ERRAND, Carrier, kind_of, same_origin
from kage.mcp.client.transport.dynamic import HeaderSource
from kage.mcp.client.transport.errand import Errand, GivenUp, Kind
from kage.mcp.client.transport.events import OldStream
from kage.mcp.client.transport.flow import Bucket
from kage.mcp.client.transport.framing import EDGE
from kage.mcp.client.transport.judge import Judge, Ruling, rpc_error
from kage.mcp.client.transport.parse import (
    INVALID_ANSWER,
    LONG,
    answer_error,
    parse,
    read_envelope,
)

_PATIENCE = 3.0  # seconds the next message waits for a notification that is not taken
_MAX_NOTICES = 64  # notifications under way at once
_MAX_HOPS = 5  # redirects of one request
_MAX_ERROR = 64 << 10  # bytes read of an answer that is none
_STREAMS = Bucket(burst=10, rate=1)  # streams opened at once, and per second


class Desk(Protocol):
    """The link, as far as its client needs it."""

    judge: Judge
    source: HeaderSource
    old: bool  # it speaks the older transport, whose answers come over one stream
    most: int  # bytes of the longest message

    def errand(self, http_method: str, *, session: bool) -> Errand:
        """Tell what a request is for."""
        ...

    def ended(self, end: End) -> None:
        """Take note that the connection is over."""
        ...

    def inject(self, item: SessionMessage) -> None:
        """Hand a message to the tap as if the server had sent it."""
        ...

    async def take(self, item: SessionMessage) -> None:
        """Hand over a message the server sent; waits while nobody takes it."""
        ...

    def stray(self) -> None:
        """Count what was no message."""
        ...


class GuardedClient(httpx2.AsyncClient):
    """What the SDK takes for its HTTP client."""

    def __init__(self, desk: Desk, carrier: Carrier, *, auth: httpx2.Auth | None) -> None:
        super().__init__(
            transport=carrier,
            auth=auth,
            headers={"user-agent": f"kage/{kage.__version__}"},
            trust_env=False,
        )
        self._desk = desk
        self._notices: set[asyncio.Task[None]] = set()
        self._streams = Bucket(burst=_STREAMS.burst, rate=_STREAMS.rate)

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **more: Any
    ) -> httpx2.Response:
        """Send what the SDK built; ``stream`` and how to follow redirects are decided here."""
        errand = self._desk.errand(request.method, session="mcp-session-id" in request.headers)
        match errand.kind:
            case Kind.REQUEST:
                return await self._request(errand, request)
            case Kind.NOTICE:
                return await self._notice(errand, request)
            case Kind.STREAM:
                return await self._stream(errand, request)
            case Kind.GOODBYE:
                return await self._deliver(errand, request)

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        """Close it; notifications under way are given up."""
        notices = tuple(self._notices)
        for task in notices:
            task.cancel()
        await asyncio.gather(*notices, return_exceptions=True)
        await super().__aexit__(kind, error, trace)

    # ---- one request

    async def _request(self, errand: Errand, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._deliver(errand, request)
            return await self._answer(errand, response)
        except Exception as error:  # boundary: becomes the answer of this one request
            return self._rule(errand, request, self._desk.judge.failed(errand, error))

    async def _deliver(self, errand: Errand, request: httpx2.Request) -> httpx2.Response:
        """Send, with new headers when they were refused, following redirects to the same origin."""
        source = self._desk.source
        for _ in range(_MAX_HOPS):
            request.extensions = {**request.extensions, ERRAND: errand}
            seen = source.round
            response = await super().send(request, stream=True, follow_redirects=False)
            if response.status_code == 401 and await source.renew(seen):
                await response.aclose()
                response = await super().send(request, stream=True, follow_redirects=False)
            following = _following(response)
            if following is None:
                return response
            await read_some(response, _MAX_ERROR)
            request = following
        return response

    async def _answer(self, errand: Errand, response: httpx2.Response) -> httpx2.Response:
        judge, request, status = self._desk.judge, response.request, response.status_code
        if not response.is_success:
            body = await read_some(response, _MAX_ERROR)
            to = str(response.next_request.url) if response.next_request is not None else ""
            if _following(response) is not None:
                to, body = "", b"it redirects without end"
            ruling = judge.refused(errand, status, body, to=to)
            error = rpc_error(body)
            if error is None or status == 401 or (ruling.end and errand.session):
                return self._rule(errand, request, ruling)
            if (end := judge.clash(errand, status, error)) is not None:
                self._desk.ended(end)
            return self._reply(errand, request, {"error": error})
        if self._desk.old:
            await read_some(response, _MAX_ERROR)
            return httpx2.Response(202, request=request)
        kind = kind_of(response.headers)
        if kind == "text/event-stream":
            return self._events(errand, response)
        if kind == "application/json":
            return await self._json(errand, response)
        body = await read_some(response, _MAX_ERROR)
        what = f"it answered HTTP {status} with " + (kind[:60] or "data of no kind")
        if not body:
            what = f"it answered HTTP {status} with nothing"
        return self._rule(errand, request, judge.odd(errand, what))

    async def _json(self, errand: Errand, response: httpx2.Response) -> httpx2.Response:
        """Read an answer whole; one that answers something else fails its call at once."""
        body = await response.aread()
        if len(body) >= LONG:
            edges = read_envelope(body[:EDGE], body[-EDGE:])
            if edges.answer and not edges.request and edges.id == errand.id:
                return response
        found = None
        for item in parse(body.replace(b"\n", b" ").replace(b"\r", b" ")):
            if not isinstance(item, SessionMessage):
                continue
            message = item.message
            if not isinstance(message, JSONRPCResponse | JSONRPCError):
                self._desk.inject(item)
            elif message.id == errand.id and type(message.id) is type(errand.id):
                found = message
            elif message.id is None and found is None:
                found = message.model_copy(update={"id": errand.id})
        if found is None:
            what = "it is no answer to this request"
            ruling = Ruling(code=INVALID_ANSWER, text=what)
            if errand.opening and errand.method == "initialize":
                ruling = self._desk.judge.odd(errand, "it answered with JSON of another kind")
            return self._rule(errand, response.request, ruling)
        text = found.model_dump_json(by_alias=True, exclude_unset=True)
        kept = {"content-type": "application/json"}
        if "mcp-session-id" in response.headers:
            kept["mcp-session-id"] = response.headers["mcp-session-id"]
        return httpx2.Response(200, content=text, headers=kept, request=response.request)

    def _rule(self, errand: Errand, request: httpx2.Request, ruling: Ruling) -> httpx2.Response:
        if ruling.end is not None:
            self._desk.ended(ruling.end)
        error = {"code": ruling.code, "message": ruling.text}
        return self._reply(errand, request, {"error": error})

    def _reply(
        self, errand: Errand, request: httpx2.Request, answer: dict[str, Any]
    ) -> httpx2.Response:
        """Answer a request here, over the way its answers come."""
        assert errand.id is not None
        if self._desk.old:
            error = answer["error"]
            self._desk.inject(answer_error(errand.id, error["message"], error["code"]))
            return httpx2.Response(202, request=request)
        return httpx2.Response(
            200, json={"jsonrpc": "2.0", "id": errand.id, **answer}, request=request
        )

    # ---- what nobody waits for

    async def _notice(self, errand: Errand, request: httpx2.Request) -> httpx2.Response:
        task = asyncio.create_task(self._post(errand, request), name="notice over HTTP")
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)
        patience = None if len(self._notices) > _MAX_NOTICES else _PATIENCE
        await asyncio.wait({task}, timeout=patience)
        return httpx2.Response(202, request=request)

    async def _post(self, errand: Errand, request: httpx2.Request) -> None:
        try:
            response = await self._deliver(errand, request)
            body = await read_some(response, _MAX_ERROR)
            if not response.is_success:
                ruling = self._desk.judge.refused(errand, response.status_code, body)
                if ruling.end is not None:
                    self._desk.ended(ruling.end)
        except Exception as error:  # boundary: a lost notification is no fault of a call
            ruling = self._desk.judge.failed(errand, error)
            if ruling.end is not None:
                self._desk.ended(ruling.end)

    # ---- streams of events

    async def _stream(self, errand: Errand, request: httpx2.Request) -> httpx2.Response:
        """Open a stream, not too often; the SDK tries again by itself when it breaks."""
        time = asyncio.get_running_loop().time
        while not errand.idle and not self._streams.take(time()):
            await asyncio.sleep(0.5)
        if errand.idle:
            raise GivenUp
        judge = self._desk.judge
        try:
            response = await self._deliver(errand, request)
        except Exception as error:  # boundary: it costs its own request
            self._stream_failed(judge.failed(errand, error))
            raise
        errand.begun()
        if not self._desk.old:
            return self._events(errand, response)
        if not response.is_success:
            body = await read_some(response, _MAX_ERROR)
            self._stream_failed(judge.refused(errand, response.status_code, body))
        elif kind_of(response.headers) != "text/event-stream":
            what = f"it answered with {kind_of(response.headers)[:60] or 'nothing'}, not events"
            self._stream_failed(
                Ruling(code=0, text=what, end=judge.no_events(what)),
            )
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = OldStream(
            response.stream,
            url=str(request.url),
            most=self._desk.most,
            take=self._desk.take,
            stray=self._desk.stray,
            failed=lambda why: self._desk.ended(judge.no_events(why)),
        )
        return response

    def _events(self, errand: Errand, response: httpx2.Response) -> httpx2.Response:
        """Have the SDK see of a stream of events what it can be trusted with."""
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = AnswerStream(
            response.stream, request=errand.id, most=self._desk.most, stray=self._desk.stray
        )
        return response

    def _stream_failed(self, ruling: Ruling) -> None:
        if ruling.end is not None:
            self._desk.ended(ruling.end)


def _following(response: httpx2.Response) -> httpx2.Request | None:
    """Give the request a redirect leads to when it stays within the origin and keeps the method."""
    following = response.next_request
    if following is None or following.method != response.request.method:
        return None
    sent, new = response.request.url, following.url
    upgraded = (sent.scheme, new.scheme, sent.port, new.port) == ("http", "https", None, None)
    if not same_origin(sent, new) and not (upgraded and sent.host == new.host):
        return None
    return following if not new.userinfo or new.userinfo == sent.userinfo else None
