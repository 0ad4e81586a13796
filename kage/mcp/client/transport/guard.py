"""The HTTP client below the SDK's transports: what goes wrong with one request stays with it.

The SDK ends the whole connection when a request raises. Here a request always gets an answer of
the protocol, if need be one that says what happened. Imports httpx2 and the SDK: import it late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType, TracebackType
from typing import Any

import httpx2
from mcp.shared.message import SessionMessage

import kage
from kage.mcp.client.transport.answers import AnswerStream
from kage.mcp.client.transport.body import read_some
from kage.mcp.client.transport.carrier import ERRAND, Carrier, kind_of
from kage.mcp.client.transport.errand import Errand, GivenUp, Kind
from kage.mcp.client.transport.events import OldStream
from kage.mcp.client.transport.flow import Bucket
from kage.mcp.client.transport.framing import EDGE
from kage.mcp.client.transport.judge import Ruling
from kage.mcp.client.transport.parse import LONG, read_envelope
from kage.mcp.client.transport.replies import (
    EVENTS,
    JSON,
    MAX_ERROR,
    Answer,
    Desk,
    Replies,
    following,
)

_PATIENCE = 3.0  # seconds the next message waits for a notification that is not taken
_MAX_NOTICES = 64  # notifications under way at once
_MAX_HOPS = 5  # redirects of one request
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_STREAMS = Bucket(burst=10, rate=1)  # streams opened at once, and per second


class GuardedClient(httpx2.AsyncClient):
    """What the SDK takes for its HTTP client.

    ``listing``: shown the SDK's requests for the list of tools.
    """

    def __init__(self, desk: Desk, carrier: Carrier, *, auth: httpx2.Auth | None) -> None:
        super().__init__(
            transport=carrier,
            auth=auth,
            headers={"user-agent": f"kage/{kage.__version__}"},
            trust_env=False,
        )
        self.listing: Callable[[httpx2.Request], None] | None = None
        self._desk = desk
        self._replies = Replies(desk)
        self._notices: set[asyncio.Task[None]] = set()
        self._streams = Bucket(burst=_STREAMS.burst, rate=_STREAMS.rate)

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **more: Any
    ) -> httpx2.Response:
        """Send what the SDK built; ``stream`` and how to follow redirects are decided here."""
        errand = self._desk.errand(request.method, session="mcp-session-id" in request.headers)
        match errand.kind:
            case Kind.REQUEST:
                if self.listing is not None and errand.method == "tools/list":
                    self.listing(request)
                return await self._request(errand, request)
            case Kind.NOTICE:
                return await self._notice(errand, request)
            case Kind.STREAM:
                return await self._stream(errand, request)
            case Kind.GOODBYE:
                return await self.deliver(errand, request)

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
            response = await self.deliver(errand, request)
            return await self._answer(errand, response)
        except Exception as error:  # boundary: becomes the answer of this one request
            return self._reply(request, self._replies.failed(errand, error))

    async def deliver(self, errand: Errand, request: httpx2.Request) -> httpx2.Response:
        """Send, with new headers when they were refused, following redirects to the same origin."""
        source = self._desk.source
        for _ in range(_MAX_HOPS):
            request.extensions = {**request.extensions, ERRAND: errand}
            seen = source.round
            response = await super().send(request, stream=True, follow_redirects=False)
            if response.status_code == 401 and await source.renew(seen):
                await response.aclose()
                response = await super().send(request, stream=True, follow_redirects=False)
            next_one = following(response)
            if next_one is None:
                return response
            await read_some(response, MAX_ERROR)
            request = next_one
        return response

    async def _answer(self, errand: Errand, response: httpx2.Response) -> httpx2.Response:
        if self._desk.old and response.is_success:
            await read_some(response, MAX_ERROR)
            return httpx2.Response(202, request=response.request)
        kept: dict[str, str] = {}
        if response.is_success and kind_of(response.headers) == JSON:
            body = await response.aread()
            if _plain(errand, body):
                return response
            answer: Answer | None = self._replies.read(errand, body)
            if "mcp-session-id" in response.headers:
                kept["mcp-session-id"] = response.headers["mcp-session-id"]
        else:
            answer = await self._replies.of(errand, response)
        if answer is None:
            return self._events(errand, response)
        return self._reply(response.request, answer, kept)

    def _reply(
        self, request: httpx2.Request, answer: Answer, headers: Mapping[str, str] = _NO_HEADERS
    ) -> httpx2.Response:
        """Answer a request here, over the way its answers come."""
        if self._desk.old:
            self._desk.inject(SessionMessage(answer))
            return httpx2.Response(202, request=request)
        text = answer.model_dump_json(by_alias=True, exclude_unset=True)
        sent = {"content-type": JSON, **headers}
        return httpx2.Response(200, content=text, headers=sent, request=request)

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
            response = await self.deliver(errand, request)
            body = await read_some(response, MAX_ERROR)
            if not response.is_success:
                ruling = self._desk.judge.refused(errand, response.status_code, body)
                if ruling.end is not None:
                    self._desk.ended(ruling.end)
        except Exception as error:  # boundary: a lost notification is no fault of a call
            ruling = self._desk.judge.failed(errand, error)
            if ruling.end is not None:
                self._desk.ended(ruling.end)

    # ---- streams of events

    async def opened(self, errand: Errand, request: httpx2.Request) -> httpx2.Response:
        """Open a stream, not too often.

        Raises:
            GivenUp: nobody waits for what it would bring.
            httpx2.HTTPError: the way broke.
        """
        time = asyncio.get_running_loop().time
        while not errand.idle and not self._streams.take(time()):
            await asyncio.sleep(0.5)
        if errand.idle:
            raise GivenUp
        try:
            response = await self.deliver(errand, request)
        except Exception as error:  # boundary: it costs its own request
            self._stream_failed(self._desk.judge.failed(errand, error))
            raise
        errand.begun()
        return response

    async def _stream(self, errand: Errand, request: httpx2.Request) -> httpx2.Response:
        """Open a stream for the SDK, which tries again by itself when it breaks."""
        response = await self.opened(errand, request)
        judge = self._desk.judge
        if not self._desk.old:
            return self._events(errand, response)
        if not response.is_success:
            body = await read_some(response, MAX_ERROR)
            self._stream_failed(judge.refused(errand, response.status_code, body))
        elif kind_of(response.headers) != EVENTS:
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


def _plain(errand: Errand, body: bytes) -> bool:
    """Say whether a long body answers the request by the look of its edges: the SDK may read it."""
    if len(body) < LONG:
        return False
    edges = read_envelope(body[:EDGE], body[-EDGE:])
    return edges.answer and not edges.request and edges.id == errand.id
