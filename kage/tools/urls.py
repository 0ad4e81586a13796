"""Take apart the addresses web_fetch is given, and refuse the dangerous spellings."""

from __future__ import annotations

from dataclasses import dataclass

from kage.core.errors import ToolError
from kage.core.sanitise import clip, visible

MAX_LENGTH = 8000  # characters
_SAFE = "/%:@!$&'()*+,;=~-._?"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A checked http or https address; ``host`` is ASCII, without brackets."""

    scheme: str
    host: str
    port: int
    target: str  # path and query, percent-encoded

    @property
    def authority(self) -> str:
        """The host as a Host header and a URL write it, with the port where it is not usual."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse(url: str) -> Address:
    """Check ``url`` and take it apart; what comes after ``#`` is dropped.

    Raises:
        ToolError: another scheme, credentials, no host, or characters parsers disagree about.
    """
    from urllib.parse import quote, urlsplit  # with the first fetch

    shown = clip(visible(url, single_line=True), 200)
    url = url.strip()
    if len(url) > MAX_LENGTH:
        raise ToolError(f"The URL is longer than {MAX_LENGTH:,} characters")
    if any(ord(character) <= 0x20 or character in "\\\x7f" for character in url):
        raise ToolError(f"The URL {shown} holds a space, a control character or a backslash")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ToolError(f"{shown} is not a URL", why=str(error)) from error
    if parts.scheme not in _PORTS:
        raise ToolError(
            f"Only http and https addresses can be fetched, not {shown}",
            fix="Use read for files" if parts.scheme == "file" else "",
        )
    if "@" in parts.netloc:
        raise ToolError("A URL with a user name or password is not fetched", fix="Leave them out")
    if not parts.hostname or port == 0:
        raise ToolError(f"{shown} names no host")
    try:
        target = quote(parts.path or "/", safe=_SAFE.replace("?", ""))
        query = f"?{quote(parts.query, safe=_SAFE)}" if parts.query else ""
    except UnicodeEncodeError as error:
        raise ToolError(f"{shown} holds half a surrogate pair") from error
    return Address(
        scheme=parts.scheme,
        host=_ascii_host(parts.hostname, shown),
        port=port or _PORTS[parts.scheme],
        target=target + query,
    )


def _ascii_host(host: str, shown: str) -> str:
    if host.isascii():
        if any(character in "%<>^`{|}" for character in host.partition("%25")[0]):
            raise ToolError(f"{shown} has a host name with odd characters")
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise ToolError(f"{shown} has a host name that is none", why=str(error)) from error


def join(base: Address, location: str) -> Address:
    """Give where a redirect from ``base`` to ``location`` leads; checked like any address."""
    from urllib.parse import urljoin

    try:
        return parse(urljoin(str(base), location))
    except ValueError as error:
        raise ToolError("The redirect leads to something that is no URL") from error
