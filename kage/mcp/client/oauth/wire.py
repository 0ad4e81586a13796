"""The guarded way of a sign-in's own requests: checked addresses, small answers, a deadline.

Nothing of the server's configured headers or cookies goes this way, and no redirect is followed
except by who asked, through here again. Imports httpx2: import it late.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpcore2
import httpx2

import kage
from kage.core.sanitise import clip
from kage.mcp.client.oauth.guard import Guard
from kage.mcp.client.oauth.problems import Offline, Refused
from kage.mcp.client.transport.proxies import proxy_for

DEADLINE = 30.0  # seconds for one request, names and body included
MAX_BODY = 1 << 20  # bytes; metadata and tokens are a few thousand
_CONNECT = 10.0  # seconds for one address


class Wire:
    """Sends the requests of one sign-in; used as a context.

    ``notes`` holds in words what was odd on the way, for the reason given at the end.
    """

    def __init__(self, guard: Guard) -> None:
        self.notes: list[str] = []
        self._guard = guard
        self._client = httpx2.AsyncClient(
            transport=_Transport(guard), trust_env=False, follow_redirects=False, timeout=None
        )

    async def __aenter__(self) -> Wire:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._client.__aexit__(None, None, None)

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and read its whole answer.

        Raises:
            Refused: the address, a redirect or something in the answer is not to be followed.
            Offline: it could not be reached, or did not answer in time.
        """
        response, body = await self._exchange(request)
        return self._whole(response, body)

    async def probe(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and give its head; what follows is not read.

        Raises:
            Refused: the address is not to be followed.
            Offline: it could not be reached, or did not answer in time.
        """
        response, _ = await self._exchange(request, head=True)
        return httpx2.Response(response.status_code, headers=response.headers, request=request)

    async def _exchange(
        self, request: httpx2.Request, *, head: bool = False
    ) -> tuple[httpx2.Response, bytes]:
        self._guard.check(str(request.url), "address")
        request.headers["Accept-Encoding"] = "identity"
        request.headers["User-Agent"] = f"kage/{kage.__version__}"
        request.headers.setdefault("Accept", "application/json")
        where = f"{request.url.host}{request.url.path}"
        try:
            async with asyncio.timeout(DEADLINE):
                response = await self._client.send(request, stream=True)
                try:
                    return response, b"" if head else await _read(response, where)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise Offline(f"{where} did not answer within {DEADLINE:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise Offline(f"{where} could not be asked: {_cause(error)}") from None

    def _whole(self, response: httpx2.Response, body: bytes) -> httpx2.Response:
        request = response.request
        following = response.next_request
        if following is not None:
            target = str(following.url)
            self._guard.check(target, f"redirect from {request.url.host}")
            self.notes.append(f"{request.url.host}{request.url.path} redirects to {target}")
        elif response.status_code >= 400:
            path = f"{request.url.host}{request.url.path}"
            self.notes.append(f"{path} answered {response.status_code}")
        elif request.method == "GET":
            self._guard.check_metadata(_json(body))
        headers = [
            (name, value)
            for name, value in response.headers.multi_items()
            if name.lower() not in ("content-length", "transfer-encoding", "set-cookie")
        ]
        whole = httpx2.Response(
            response.status_code, headers=headers, content=body, request=request
        )
        whole.next_request = following
        return whole


async def _read(response: httpx2.Response, where: str) -> bytes:
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise Refused(f"{where} answered in the encoding {clip(encoding, 20)}, which kage refuses")
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > MAX_BODY:
            raise Refused(f"{where} answered with more than {MAX_BODY >> 20} MiB")
    return bytes(body)


def _json(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _cause(error: BaseException) -> str:
    cause: BaseException = error
    while (deeper := cause.__cause__ or cause.__context__) is not None:
        cause = deeper
    if isinstance(cause, ssl.SSLError):
        return f"its certificate is not accepted ({cause.reason or cause})"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return clip(str(error) or str(cause) or type(cause).__name__, 200)


class _Backend(httpcore2.AsyncNetworkBackend):
    """Connects only to addresses the guard has seen: a name is never resolved a second time."""

    def __init__(self, guard: Guard, scheme: str) -> None:
        self._guard = guard
        self._scheme = scheme
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,  # Any: the library's private union
    ) -> httpcore2.AsyncNetworkStream:
        trouble: Exception | None = None
        for address in await self._guard.addresses(self._scheme, host.strip("[]"), port):
            try:
                return await self._inner.connect_tcp(address, port, timeout=_CONNECT)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                trouble = error
        raise trouble or OSError(f"the host {host} was not found")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Transport(httpx2.AsyncBaseTransport):
    """One connection pool per scheme, on the checked backend, and one per proxy."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._pools: dict[tuple[str, str], httpcore2.AsyncConnectionPool] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; its body is small and already in memory."""
        content = await request.aread()
        url = request.url
        inner = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=content,
        )
        try:
            pool = await self._pool(url)
            answer = await pool.handle_async_request(inner)
        except httpcore2.ProxyError as error:
            raise httpx2.ProxyError(f"the proxy refused: {error}", request=request) from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise httpx2.NetworkError(str(error), request=request) from error
        except httpcore2.TimeoutException as error:
            raise httpx2.TimeoutException(str(error), request=request) from error
        return httpx2.Response(
            answer.status, headers=answer.headers, stream=_Stream(answer), request=request
        )

    async def _pool(self, url: httpx2.URL) -> httpcore2.AsyncConnectionPool:
        scheme, host = url.scheme, url.raw_host.decode("ascii")
        proxy = proxy_for(scheme, url.host, url.port, self._guard.proxies)
        if proxy:
            await self._guard.vouch(scheme, host, url.port or (443 if scheme == "https" else 80))
        if (scheme, proxy) not in self._pools:
            verify = httpx2.create_ssl_context() if scheme == "https" else None
            self._pools[scheme, proxy] = (
                _through(proxy, verify)
                if proxy
                else httpcore2.AsyncConnectionPool(
                    ssl_context=verify,
                    network_backend=_Backend(self._guard, scheme),
                    max_keepalive_connections=0,
                )
            )
        return self._pools[scheme, proxy]

    async def aclose(self) -> None:
        """Close every connection."""
        for pool in self._pools.values():
            await pool.aclose()


def _through(proxy: str, verify: ssl.SSLContext | None) -> httpcore2.AsyncHTTPProxy:
    """Make the pool that goes through a proxy of the person's.

    Raises:
        httpx2.UnsupportedProtocol: it is of a kind a sign-in does not go through.
    """
    try:
        found = httpx2.Proxy(proxy)
    except ValueError:
        raise httpx2.UnsupportedProtocol("HTTPS_PROXY names no proxy kage knows") from None
    if found.url.scheme not in ("http", "https"):
        raise httpx2.UnsupportedProtocol("a sign-in takes no SOCKS proxy")
    secure = found.url.scheme == "https"
    return httpcore2.AsyncHTTPProxy(
        proxy_url=httpcore2.URL(str(found.url)),
        proxy_auth=found.raw_auth,
        ssl_context=verify,
        proxy_ssl_context=httpx2.create_ssl_context() if secure else None,
        max_keepalive_connections=0,
    )


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._answer.aiter_stream():
                yield piece
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise httpx2.ReadError(str(error)) from error

    async def aclose(self) -> None:
        await self._answer.aclose()
