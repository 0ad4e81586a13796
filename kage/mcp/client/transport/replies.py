"""What one request is answered with, whatever came of it over HTTP.

Imports httpx2 and the SDK: import it late.
"""

from __future__ import annotations

from typing import Any, Protocol

import httpx2
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import ErrorData, JSONRPCError, JSONRPCResponse

from kage.mcp.client.transport.base import End
from kage.mcp.client.transport.body import read_some
from kage.mcp.client.transport.carrier import kind_of, same_origin
from kage.mcp.client.transport.dynamic import HeaderSource
from kage.mcp.client.transport.errand import Errand
from kage.mcp.client.transport.judge import Judge, Ruling, rpc_error
from kage.mcp.client.transport.parse import INVALID_ANSWER, parse

MAX_ERROR = 64 << 10  # bytes read of an answer that is none
EVENTS = "text/event-stream"
JSON = "application/json"

Answer = JSONRPCResponse | JSONRPCError


class Desk(Protocol):
    """The link, as far as its requests need it."""

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


class Replies:
    """Makes answers of the protocol out of responses; the end of a connection is told the link."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def of(self, errand: Errand, response: httpx2.Response) -> Answer | None:
        """Give the answer a response is or stands for; None: it comes over a stream of events.

        Raises:
            Unusable: it is too long or broken.
            httpx2.HTTPError: the way broke.
            TimeoutError: it took too long.
        """
        if not response.is_success:
            return await self._refused(errand, response)
        kind = kind_of(response.headers)
        if kind == EVENTS:
            return None
        if kind == JSON:
            return self.read(errand, await _whole(response))
        body = await read_some(response, MAX_ERROR)
        what = f"it answered HTTP {response.status_code} with " + (kind[:60] or "data of no kind")
        if not body:
            what = f"it answered HTTP {response.status_code} with nothing"
        return self.ruled(errand, self._desk.judge.odd(errand, what))

    def read(self, errand: Errand, body: bytes) -> Answer:
        """Find the answer in a body of JSON; one that answers something else fails its call."""
        found: Answer | None = None
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
        if found is not None:
            return found
        ruling = Ruling(code=INVALID_ANSWER, text="it is no answer to this request")
        if errand.opening and errand.method == "initialize":
            ruling = self._desk.judge.odd(errand, "it answered with JSON of another kind")
        return self.ruled(errand, ruling)

    def failed(self, errand: Errand, error: BaseException) -> JSONRPCError:
        """Give the answer that stands for one that did not come."""
        return self.ruled(errand, self._desk.judge.failed(errand, error))

    def ruled(self, errand: Errand, ruling: Ruling) -> JSONRPCError:
        """Give the answer a ruling means."""
        if ruling.end is not None:
            self._desk.ended(ruling.end)
        return _error(errand, {"code": ruling.code, "message": ruling.text})

    async def _refused(self, errand: Errand, response: httpx2.Response) -> JSONRPCError:
        judge, status = self._desk.judge, response.status_code
        body = await read_some(response, MAX_ERROR)
        to = str(response.next_request.url) if response.next_request is not None else ""
        if following(response) is not None:
            to, body = "", b"it redirects without end"
        ruling = judge.refused(errand, status, body, to=to)
        error = rpc_error(body)
        if error is None or status == 401 or (ruling.end and errand.session):
            return self.ruled(errand, ruling)
        if (end := judge.clash(errand, status, error)) is not None:
            self._desk.ended(end)
        return _error(errand, error)


def following(response: httpx2.Response) -> httpx2.Request | None:
    """Give the request a redirect leads to when it stays within the origin and keeps the method."""
    request = response.next_request
    if request is None or request.method != response.request.method:
        return None
    sent, new = response.request.url, request.url
    upgraded = (sent.scheme, new.scheme, sent.port, new.port) == ("http", "https", None, None)
    if not same_origin(sent, new) and not (upgraded and sent.host == new.host):
        return None
    return request if not new.userinfo or new.userinfo == sent.userinfo else None


async def _whole(response: httpx2.Response) -> bytes:
    """Read a body that is decoded already, without httpx2's look at each piece."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    try:
        return b"".join([piece async for piece in response.stream])
    finally:
        await response.aclose()


def _error(errand: Errand, error: dict[str, Any]) -> JSONRPCError:
    assert errand.id is not None
    return JSONRPCError(jsonrpc="2.0", id=errand.id, error=ErrorData.model_validate(error))
