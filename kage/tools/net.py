"""Fetch from public addresses only: every connection is made to an address that was checked."""

from __future__ import annotations

import asyncio
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any

from kage import __version__
from kage.core import addresses
from kage.core.errors import ToolError
from kage.tools import urls
from kage.tools.urls import Address

if TYPE_CHECKING:
    import httpcore2

MAX_BODY = 5 << 20  # decoded bytes
MAX_REDIRECTS = 8
DEADLINE = 30.0  # seconds for everything: names, redirects, body
_REDIRECTS = frozenset((301, 302, 303, 307, 308))

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """One answer; ``cut`` says that the body goes on after ``MAX_BODY``."""

    url: str  # after redirects
    status: int
    content_type: str
    body: bytes
    cut: bool


async def resolve(host: str, port: int) -> Sequence[str]:
    """Ask the system for all addresses of ``host``; raises OSError.

    The question is put in a thread of its own that nobody waits for: one that a name server
    leaves hanging would hold up the end of the program by half a minute.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Sequence[str]] = loop.create_future()

    def ask() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            deliver = partial(_settle, answer, error)
        else:
            unique = list(dict.fromkeys(str(entry[4][0]) for entry in found))
            deliver = partial(_settle, answer, unique)
        with suppress(RuntimeError):  # the loop is closed: nobody wants to know any more
            loop.call_soon_threadsafe(deliver)

    Thread(target=ask, name=f"resolve {host}"[:60], daemon=True).start()
    return await answer


def _settle(answer: asyncio.Future[Sequence[str]], value: Sequence[str] | Exception) -> None:
    if answer.done():
        return  # cancelled meanwhile
    if isinstance(value, Exception):
        answer.set_exception(value)
    else:
        answer.set_result(value)


async def fetch(url: str, *, resolver: Resolver = resolve, allow_loopback: bool = False) -> Fetched:
    """Get ``url``, following redirects; no cookies, no credentials, no proxy.

    Raises:
        ToolError: a hop is not public or no http(s), it took too long, or it broke off.
    """
    try:
        async with asyncio.timeout(DEADLINE):
            return await _follow(urls.parse(url), resolver, allow_loopback=allow_loopback)
    except TimeoutError:
        raise ToolError(f"Fetching took longer than {DEADLINE:.0f} seconds and was ended") from None


async def _follow(address: Address, resolver: Resolver, *, allow_loopback: bool) -> Fetched:
    import httpcore2  # with the first fetch: it costs more than all tools together

    for _ in range(MAX_REDIRECTS + 1):
        try:
            async with _get(address, resolver, allow_loopback=allow_loopback) as response:
                headers = _headers(response.headers)
                location = headers.get("location")
                if response.status not in _REDIRECTS or not location:
                    body, cut = await _read(response, headers)
                    return Fetched(
                        url=str(address),
                        status=response.status,
                        content_type=headers.get("content-type", ""),
                        body=body,
                        cut=cut,
                    )
        except (
            httpcore2.NetworkError,
            httpcore2.ProtocolError,
            httpcore2.TimeoutException,
            OSError,
        ) as error:
            raise _broken(address, error) from error
        address = urls.join(address, location)
    raise ToolError(f"The address redirects more than {MAX_REDIRECTS} times")


def _broken(address: Address, error: Exception) -> ToolError:
    from ssl import SSLError

    cause: BaseException = error
    while cause.__cause__ is not None or cause.__context__ is not None:
        cause = cause.__cause__ or cause.__context__ or cause
    if isinstance(cause, SSLError):
        why = f"its certificate or encryption is not accepted ({cause.reason or cause})"
    else:
        why = str(error) or str(cause) or type(cause).__name__
    return ToolError(f"{address.host} could not be fetched from", why=why)


@asynccontextmanager
async def _get(
    address: Address, resolver: Resolver, *, allow_loopback: bool
) -> AsyncIterator[httpcore2.Response]:
    import httpcore2

    checked = await _checked_addresses(address, resolver, allow_loopback=allow_loopback)
    headers: dict[bytes | str, bytes | str] = {
        "Host": address.authority,
        "User-Agent": f"kage/{__version__}",
        "Accept": "text/html, text/markdown, text/plain, application/json;q=0.9, */*;q=0.5",
        "Accept-Encoding": "gzip, deflate",
    }
    pool = httpcore2.AsyncConnectionPool(network_backend=_backend(address.host, checked))
    url = httpcore2.URL(
        scheme=address.scheme, host=address.host, port=address.port, target=address.target
    )
    async with pool, pool.stream("GET", url, headers=headers) as response:
        yield response


async def _checked_addresses(
    address: Address, resolver: Resolver, *, allow_loopback: bool
) -> Sequence[str]:
    """Resolve a host once; one address that is not public spoils all of them."""
    try:
        found = await resolver(address.host, address.port)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ToolError(f"The host {address.host} was not found", why=why) from error
    if not found:
        raise ToolError(f"The host {address.host} was not found")
    for item in found:
        if allow_loopback and addresses.is_loopback(item):
            continue
        if not addresses.is_public(item):
            raise ToolError(
                f"{address.host} is not a public address",
                why=f"it leads to {item}",
                fix="Only public addresses are fetched",
            )
    return found


def _backend(host: str, checked: Sequence[str]) -> httpcore2.AsyncNetworkBackend:
    """Make connections of ``host`` go to the addresses that were checked, and nowhere else."""
    import httpcore2

    class Pinned(httpcore2.AsyncNetworkBackend):
        """Connects to known addresses; the name is never resolved a second time."""

        def __init__(self) -> None:
            self._inner = httpcore2.AnyIOBackend()

        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: Iterable[Any] | None = None,  # Any: the library's private union
        ) -> httpcore2.AsyncNetworkStream:
            if host != pinned:
                raise httpcore2.ConnectError("another host than the one that was checked")
            trouble: Exception | None = None
            for item in checked:
                try:
                    return await self._inner.connect_tcp(item, port, timeout=10.0)
                except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                    trouble = error
            raise trouble or httpcore2.ConnectError("no address to connect to")

        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(seconds)

    pinned = host
    return Pinned()


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Give the headers by small name; the first of several counts, the others are odd anyway."""
    found: dict[str, str] = {}
    for name, value in raw:
        found.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return found


async def _read(response: httpcore2.Response, headers: dict[str, str]) -> tuple[bytes, bool]:
    """Read and decode the body up to ``MAX_BODY`` decoded bytes; more is never held."""
    decode = _decoder(headers.get("content-encoding", ""))
    body = bytearray()
    async for data in response.aiter_stream():
        try:
            body += decode(data, MAX_BODY + 1 - len(body))
        except zlib.error as error:
            raise ToolError("The compressed answer is broken", why=str(error)) from error
        if len(body) > MAX_BODY:
            return bytes(body[:MAX_BODY]), True
    return bytes(body), False


def _decoder(encoding: str) -> Callable[[bytes, int], bytes]:
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return lambda data, most: data[:most]
    if encoding in ("gzip", "x-gzip", "deflate"):
        return _Inflater().feed
    raise ToolError(f"The answer comes in the encoding {encoding!r}, which was not asked for")


class _Inflater:
    """Decompresses gzip, zlib and bare deflate, never more than it is asked for."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._started = False

    def feed(self, data: bytes, most: int) -> bytes:
        """Give at most ``most`` bytes; with that many the caller stops, so no rest is kept."""
        try:
            out = self._inner.decompress(data, most)
        except zlib.error:
            if self._started:
                raise
            self._inner = zlib.decompressobj(-zlib.MAX_WBITS)  # what some call "deflate"
            out = self._inner.decompress(data, most)
        self._started = True
        return out
