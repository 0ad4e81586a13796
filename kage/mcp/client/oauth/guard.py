"""Which addresses of a sign-in may be asked or shown: what a server says of them is not trusted.

Everything has to be https. Plain http is for this machine only, and this machine only when the
person's own server is on it. An address inside a private network counts only on the very origin the
person configured, since a server elsewhere could otherwise make kage knock on doors it can reach.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from threading import Thread
from urllib.parse import SplitResult, urlsplit

from kage.core.addresses import is_loopback, is_public
from kage.core.links import BadLink, check_link
from kage.core.sanitise import clip
from kage.mcp.client.oauth.problems import Refused

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
Origin = tuple[str, str, int]

_SHELL = frozenset("$();!*|`'\"\\<>{}^")
_ENDPOINTS = (
    "issuer",
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "revocation_endpoint",
    "resource",
)
_PORTS = {"http": 80, "https": 443}


class Guard:
    """Judges addresses for one configured server.

    Args:
        own: Addresses the person wrote down: the server's, and the issuer's if given.
        proxies: What the person's environment says about proxies.
    """

    def __init__(
        self,
        *own: str,
        resolver: Resolver | None = None,
        proxies: Mapping[str, str] | None = None,
    ) -> None:
        self.proxies = proxies or {}
        self._own = {origin_of(urlsplit(url)) for url in own if url}
        self._local = any(_is_local_name(host) for _, host, _ in self._own)
        self._resolve = resolver or resolve

    def check(self, url: str, role: str) -> SplitResult:
        """Judge an address by its text; ``role`` names it in the reason.

        Raises:
            Refused: it is not one to follow.
        """
        try:
            parts = check_link(url)
        except BadLink as bad:
            raise Refused(f"its {role} is refused: {bad}") from None
        if _SHELL & set(url):
            raise Refused(f"its {role} is refused: it holds characters a shell would act on")
        host = (parts.hostname or "").lower()
        local = _is_local_name(host)
        if parts.scheme.lower() == "http" and not local:
            raise Refused(f"its {role} is refused: {_short(url)} is not https")
        if origin_of(parts) in self._own:
            return parts
        if local and not self._local:
            raise Refused(f"its {role} is refused: {host} is this machine, and the server is not")
        if _is_number(host) and not local and not is_public(host.strip("[]")):
            raise Refused(f"its {role} is refused: {host} is not a public address")
        return parts

    async def addresses(self, scheme: str, host: str, port: int) -> Sequence[str]:
        """Resolve a host and give the addresses a connection may go to.

        Raises:
            Refused: one of them is not public, and the person did not configure this origin.
            OSError: there is no such host.
        """
        found = await self._resolve(host, port)
        if not found:
            raise OSError(f"the host {host} was not found")
        if (scheme, host.lower(), port) in self._own:
            return found
        local = self._local and _is_local_name(host)
        for item in found:
            if not (is_loopback(item) if local else is_public(item)):
                raise Refused(f"{host} is refused: it leads to {item}, which is not public")
        return found

    async def vouch(self, scheme: str, host: str, port: int) -> None:
        """Judge a host a proxy will connect to; where only the proxy knows names, that is all.

        Raises:
            Refused: it is known here, and not public.
        """
        with contextlib.suppress(OSError):
            await self.addresses(scheme, host, port)

    def check_metadata(self, document: object) -> None:
        """Judge every address in a metadata document, before any of them is used.

        Raises:
            Refused: one of them is not one to follow.
        """
        if not isinstance(document, Mapping):
            return
        for name in _ENDPOINTS:
            value = document.get(name)
            if isinstance(value, str) and value:
                self.check(value, name)
        servers = document.get("authorization_servers")
        for value in servers[:20] if isinstance(servers, list) else ():
            if isinstance(value, str):
                self.check(value, "authorization server")


def origin_of(parts: SplitResult) -> Origin:
    """Give scheme, host and port of an address, as a connection names them."""
    scheme = parts.scheme.lower()
    return scheme, _ascii(parts.hostname or ""), parts.port or _PORTS.get(scheme, 0)


async def resolve(host: str, port: int) -> Sequence[str]:
    """Ask the system for all addresses of ``host``, on a thread nobody has to wait for.

    Raises:
        OSError: there is none.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Sequence[str]] = loop.create_future()

    def settle(found: Sequence[str], trouble: OSError | None) -> None:
        if answer.done():
            return
        if trouble is not None:
            answer.set_exception(trouble)
        else:
            answer.set_result(found)

    def ask() -> None:
        found: Sequence[str] = ()
        trouble: OSError | None = None
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found = list(dict.fromkeys(str(row[4][0]) for row in rows))
        except OSError as error:
            trouble = error
        except UnicodeError:
            trouble = OSError(f"{host!r} is no name of a host")
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, found, trouble)

    Thread(target=ask, name=f"resolve {host}"[:60], daemon=True).start()
    return await answer


def _ascii(host: str) -> str:
    """Spell a host in small letters and, where it is an international name, as it is looked up."""
    if host.isascii():
        return host.lower()
    import idna

    try:
        return idna.encode(host.lower()).decode("ascii")
    except idna.IDNAError:
        return host.lower()


def _is_local_name(host: str) -> bool:
    name = host.strip("[]").rstrip(".").lower()
    return name == "localhost" or name.endswith(".localhost") or is_loopback(name)


def _is_number(host: str) -> bool:
    """Say whether a host is an address, in whichever spelling a resolver would take it."""
    name = host.strip("[]").rstrip(".")
    last = name.rpartition(".")[2]
    return ":" in name or last.isdigit() or last.lower().startswith("0x")


def _short(url: str) -> str:
    return clip(url, 120)
