"""The connections to one place: each carries one request at a time, the last one used goes first.

httpcore2's own pool looks at the socket of every idle connection twice for each request. Imports
httpx2: import it late.
"""

from __future__ import annotations

import ssl
import time
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable

import anyio
import httpcore2
import httpx2

_IDLE = 64  # connections that are kept for the next requests
_EXPIRY = 5.0  # seconds one is kept

_Place = tuple[bytes, bytes, int]
_Connection = httpcore2.AsyncConnectionInterface


class Network(httpx2.AsyncHTTPTransport):
    """httpx2's way to the network, over a pool of kage's own."""

    def __init__(self, *, verify: ssl.SSLContext | bool, proxy: str | None) -> None:
        limits = httpx2.Limits(keepalive_expiry=_EXPIRY)
        super().__init__(verify=verify, proxy=proxy, limits=limits, trust_env=False)
        # only these two methods of a pool are asked for
        self._pool = Pool(self._pool.create_connection)  # type: ignore[assignment]


class Pool:
    """Sends each request over an idle connection, or a new one; there is no limit to their number.

    Args:
        make: Makes a connection that is opened by its first request.
    """

    def __init__(self, make: Callable[[httpcore2.Origin], _Connection]) -> None:
        self._make = make
        self._all: set[_Connection] = set()
        self._idle: dict[_Place, deque[tuple[float, _Connection]]] = {}

    async def handle_async_request(self, request: httpcore2.Request) -> httpcore2.Response:
        """Send one request; its connection is free once the body was read or closed."""
        origin = request.url.origin
        place = (origin.scheme, origin.host, origin.port)
        connection = await self._taken(place)
        if connection is None:
            connection = self._make(origin)
            self._all.add(connection)
        try:
            response = await connection.handle_async_request(request)
        except BaseException:
            await self._give_back(place, connection)
            raise
        assert isinstance(response.stream, AsyncIterable)
        response.stream = _Held(response.stream, lambda: self._give_back(place, connection))
        return response

    async def aclose(self) -> None:
        """Close every connection."""
        self._idle.clear()
        for connection in tuple(self._all):
            await self._drop(connection)

    async def _taken(self, place: _Place) -> _Connection | None:
        """Take an idle connection that is still well."""
        idle = self._idle.get(place)
        while idle:
            _, connection = idle.pop()
            if not connection.is_closed() and not connection.has_expired():
                return connection
            await self._drop(connection)
        return None

    async def _give_back(self, place: _Place, connection: _Connection) -> None:
        if connection not in self._all or connection.is_closed() or not connection.is_idle():
            await self._drop(connection)
            return
        now = time.monotonic()
        idle = self._idle.setdefault(place, deque())
        idle.append((now, connection))
        while idle and (len(idle) > _IDLE or idle[0][0] + _EXPIRY < now):  # others take meanwhile
            await self._drop(idle.popleft()[1])

    async def _drop(self, connection: _Connection) -> None:
        self._all.discard(connection)
        with anyio.CancelScope(shield=True):
            await connection.aclose()


class _Held:
    """A body whose connection is given back with it."""

    def __init__(
        self, stream: AsyncIterable[bytes], give_back: Callable[[], Awaitable[None]]
    ) -> None:
        self._stream = stream
        self._give_back = give_back
        self._closed = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._stream.__aiter__()

    async def aclose(self) -> None:
        """Let go of the connection."""
        if not self._closed:
            self._closed = True
            try:
                with anyio.CancelScope(shield=True):
                    if hasattr(self._stream, "aclose"):
                        await self._stream.aclose()
            finally:
                await self._give_back()
