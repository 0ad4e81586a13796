"""Carries HTTP requests: which headers go where, through which proxy, and what of a body counts.

Imports httpx2: import it late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import httpx2

from kage.mcp.client.transport.address import Address
from kage.mcp.client.transport.body import ENCODINGS, Body
from kage.mcp.client.transport.errand import Errand, Term
from kage.mcp.client.transport.pool import Network
from kage.mcp.client.transport.proxies import proxy_for

ERRAND = "kage.errand"  # the extension that marks the SDK's own requests
_FOREIGN_LIMIT = 30.0  # seconds for a request to another origin, a sign-in server's
_FOREIGN_BODY = 1 << 20  # bytes of its answer
_PROTOCOL = frozenset(  # headers that are the protocol's business, whatever an entry says
    {"accept", "connection", "content-length", "content-type", "last-event-id", "mcp-method"}
    | {"mcp-name", "mcp-protocol-version", "mcp-session-id", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)


class Carrier(httpx2.AsyncBaseTransport):
    """Sends requests for one entry.

    Args:
        headers: The entry's headers as of now; they go to the origin of its url alone.
        most: Decoded bytes of one answer, events aside.
        connect: Seconds a connection may take to be made.
    """

    def __init__(
        self,
        address: Address,
        *,
        headers: Callable[[], Mapping[str, str]],
        most: int,
        connect: float,
    ) -> None:
        self._home = httpx2.URL(address.url)
        self._proxies = address.proxies
        self._headers = headers
        self._most = most
        self._timeout = {"connect": connect, "pool": None, "read": None, "write": connect}
        self._pools: dict[tuple[str, bool], Network] = {}
        self._opening = asyncio.Lock()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request, redirects unfollowed."""
        own = same_origin(request.url, self._home)
        errand = request.extensions.get(ERRAND)
        term = errand.term if isinstance(errand, Errand) else Term(_FOREIGN_LIMIT)
        self._dress(request, own=own)
        request.extensions = {**request.extensions, "timeout": self._timeout}
        if isinstance(errand, Errand):
            request.extensions["trace"] = errand.trace
        async with term.running():
            pool = await self._pool(request.url)
            response = await pool.handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        headers = response.headers
        encoding = headers.get("content-encoding", "")
        events = kind_of(headers) == "text/event-stream"
        most = (None if events else self._most) if own else _FOREIGN_BODY
        for name in ("content-encoding", *(("content-length",) if encoding else ())):
            headers.pop(name, None)
        if not own:
            headers.pop("set-cookie", None)
        response.stream = Body(response.stream, encoding=encoding, most=most, term=term)
        return response

    async def aclose(self) -> None:
        """Close every connection."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.aclose()

    def _dress(self, request: httpx2.Request, *, own: bool) -> None:
        request.headers["accept-encoding"] = ENCODINGS
        if not own:
            request.headers.pop("cookie", None)
            return
        for name, value in self._headers().items():
            if name.lower() not in _PROTOCOL and not name.lower().startswith("mcp-param-"):
                request.headers[name] = value

    async def _pool(self, url: httpx2.URL) -> Network:
        proxy, secure = self._proxy(url), url.scheme == "https"
        async with self._opening:
            pool = self._pools.get((proxy, secure))
            if pool is None:
                needed = secure or proxy.startswith("https")
                # reading the system's certificates takes 60 ms: not on the loop, not for nothing
                verify = await asyncio.to_thread(httpx2.create_ssl_context) if needed else False
                pool = self._pools[proxy, secure] = Network(verify=verify, proxy=proxy or None)
        return pool

    def _proxy(self, url: httpx2.URL) -> str:
        """Give the proxy the person's environment names for ``url``, "" for none."""
        return proxy_for(url.scheme, url.host, url.port, self._proxies)


def same_origin(one: httpx2.URL, other: httpx2.URL) -> bool:
    """Say whether scheme, host and port are the same."""
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)


def kind_of(headers: httpx2.Headers) -> str:
    """Give the bare content type."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()
