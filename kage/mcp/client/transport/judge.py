"""What an HTTP answer that is no answer of the protocol means: for its call, and for the server."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from kage.core.errors import ServerError
from kage.core.sanitise import clip, visible
from kage.core.servers import Fault, Stage
from kage.mcp.client import faults
from kage.mcp.client.transport.base import ANSWER_LOST, HTTP_REFUSED, End
from kage.mcp.client.transport.errand import Errand, GivenUp, Kind

_OLD_TRANSPORT = (400, 404, 405)  # what an SSE server says to the first POST
_PASSING = (408, 425, 429)  # it may go well another time
_WRONG_VERSION = -32022


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What the call is told, and whether it was the end of the connection."""

    code: int
    text: str
    end: End | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Knows one entry, so that it can say what to do."""

    server: str
    url: str
    authorised: bool = False  # the entry says who it is, by a header or in its url
    named: bool = False  # it does so in its url
    proxy: str = ""  # what it is reached through
    commanded: bool = False  # the entry has a headers_command

    @property
    def place(self) -> str:
        """The address without what may be secret in it."""
        return bare(self.url)

    def failed(self, errand: Errand, error: BaseException) -> Ruling:
        """Rule about a request that got no usable answer."""
        cause = faults.first_cause(error)
        if getattr(type(cause), "needs_auth", False):
            return self._sign_in(errand, cause)
        if isinstance(cause, GivenUp):
            return Ruling(code=ANSWER_LOST, text="it was given up before it was sent")
        if isinstance(cause, ServerError):
            end = End(fault=faults.to_fault(cause)) if errand.opening else None
            return Ruling(code=ANSWER_LOST, text=faults.reason(cause), end=end)
        why, fix, hopeless = self.cause(cause)
        end = None
        if errand.opening:
            what = f"The server {self.server} cannot be reached at {self.place}"
            end = self._end(what, why, fix, hopeless=hopeless)
        code = getattr(cause, "code", 0) or ANSWER_LOST
        return Ruling(code=code if isinstance(code, int) else ANSWER_LOST, text=why, end=end)

    def cause(self, error: BaseException) -> tuple[str, str, bool]:
        """Say why the network failed, what to do, and whether it stays so."""
        import httpx2

        host = urlsplit(self.url).netloc.rpartition("@")[2]
        chain = tuple(_chain(error))
        for found in chain:
            match found:
                case ssl.SSLCertVerificationError():
                    fix = "Check url; for an authority of your own set SSL_CERT_FILE"
                    said = getattr(found, "verify_message", found)
                    why = f"its TLS certificate is not trusted ({said})"
                    return why, fix, True
                case ssl.SSLError():
                    why = f"no TLS is spoken there ({getattr(found, 'reason', found)})"
                    return why, "Check whether url is http:// or https://, and its port", True
                case ConnectionRefusedError() | socket.gaierror() if self.proxy:
                    why = f"the proxy {bare(self.proxy)} cannot be reached"
                    return why, "Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY", False
                case socket.gaierror():
                    return f"the name of {host} is not known", "Check url and your network", False
                case ConnectionRefusedError():
                    return f"nothing listens at {host}", "Start it, or correct url", False
                case TimeoutError() | httpx2.TimeoutException():
                    connecting = any(isinstance(one, httpx2.ConnectTimeout) for one in chain)
                    late = "it took too long to answer"
                    why = "no connection could be made in time" if connecting else late
                    return why, "Check url and your network; timeout in the entry", False
                case httpx2.ProxyError():
                    why = f"the proxy refused: {clip(str(found), 200)}"
                    return why, "Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY", False
                case httpx2.UnsupportedProtocol() | httpx2.InvalidURL() | UnicodeError():
                    return f"the request cannot be sent ({found})", "Check url and headers", True
                case httpx2.LocalProtocolError():
                    return f"the request cannot be sent ({found})", "Check its headers", True
                case ImportError():
                    why = "a SOCKS proxy needs a package that is not installed"
                    return why, "Install socksio, or use another proxy", True
        why = clip(visible(faults.reason(error), single_line=True), 200)
        if isinstance(error, httpx2.RemoteProtocolError):
            why = f"its answer was cut off or is no HTTP ({why})"
        elif isinstance(error, httpx2.NetworkError):
            why = f"the connection broke off ({why})"
        return why, "Check url, and the server's own log", False

    def refused(self, errand: Errand, status: int, body: bytes, *, to: str = "") -> Ruling:
        """Rule about an answer with a status other than 2xx; ``to``: where it redirects."""
        said = _spoken(body)
        words = f"HTTP {status} {_phrase(status)}".rstrip()
        text = f"{words}: {said}" if said else words
        if to:
            away = urlsplit(to)[:2] != urlsplit(self.url)[:2]
            rule = "kage follows only within the same origin"
            kept = f"a message cannot follow a redirect of the kind {status}"
            text = f"it redirects to {bare(to)}; {rule if away else kept}"
        if _session_gone(errand, status, said):
            end = self._end(f"The session with the server {self.server} expired", text)
            why = f"its session had expired ({words}), so the call did not run; call it again"
            return Ruling(code=HTTP_REFUSED, text=why, end=end)
        lost = status >= 500 or status in _PASSING
        code = ANSWER_LOST if lost else HTTP_REFUSED
        return Ruling(code=code, text=text, end=self._start_ends(errand, status, text, to))

    def odd(self, errand: Errand, what: str) -> Ruling:
        """Rule about a success that is no answer of the protocol."""
        end = None
        if errand.opening and errand.method == "initialize":
            fix = "Check that url is the address of an MCP server, not of a web page"
            end = self._end(
                f"No MCP server answers at {self.place}", what, fix, hopeless=True, sse=True
            )
        return Ruling(code=ANSWER_LOST, text=what, end=end)

    def no_events(self, why: str) -> End:
        """Say that an address does not speak the older transport."""
        what = f"The server {self.server} speaks no SSE at {self.place}"
        return self._end(what, why, "Check url and transport", hopeless=True)

    def clash(self, errand: Errand, status: int, error: dict[str, Any]) -> End | None:
        """Say whether a protocol error under status 400, 404 or 405 is an older server's."""
        first = errand.opening and errand.method == "initialize"
        if not first or status not in _OLD_TRANSPORT or error.get("code") == _WRONG_VERSION:
            return None
        why = f"HTTP {status}: {clip(str(error.get('message', '')), 200)}"
        what = f"The server {self.server} could not agree on the protocol"
        return self._end(what, why, "Check url, and the server's version", sse=True)

    def _start_ends(self, errand: Errand, status: int, text: str, to: str) -> End | None:
        if not errand.opening and errand.kind is not Kind.STREAM:
            return None
        if status == 401:
            return self._unauthorised(text)
        if errand.method == "server/discover":
            return None  # an older server may say anything to what it does not know
        what = f"The server {self.server} cannot be reached at {self.place}"
        if to:
            return self._end(what, text, f"Set url to {bare(to)} if you trust it", hopeless=True)
        if status == 403:
            return self._end(what, text, "Check its headers and what they allow you", hopeless=True)
        if status in _OLD_TRANSPORT:
            what = f"No MCP server answers at {self.place}"
            return self._end(what, text, "Check url", hopeless=True, sse=True)
        lost = status >= 500 or status in _PASSING
        fix = "Try again later: /mcp restart " + self.server if lost else "Check url and headers"
        return self._end(what, text, fix, hopeless=not lost)

    def _unauthorised(self, text: str) -> End:
        if self.named:
            what = f"The server {self.server} refused the user and password of its url"
            fix = f"Check url of [mcp.servers.{self.server}]"
        elif self.authorised:
            what = f"The server {self.server} refused the Authorization header of its entry"
            fix = f"Check headers of [mcp.servers.{self.server}]"
        elif self.commanded:
            what = f"The server {self.server} refused the headers its headers_command printed"
            fix = "Check what that program prints"
        else:
            what = f"The server {self.server} wants to know who you are"
            fix = f"Sign in: kage mcp login {self.server}; or set headers in its entry"
        return self._end(what, text, fix, hopeless=True)

    def _sign_in(self, errand: Errand, cause: BaseException) -> Ruling:
        if isinstance(cause, ServerError):
            fault = faults.to_fault(cause, stage=Stage.HANDSHAKE)
        else:
            fault = Fault(
                stage=Stage.HANDSHAKE,
                what=f"The server {self.server} needs you to sign in",
                why=faults.reason(cause),
                fix=f"Sign in: kage mcp login {self.server}",
            )
        end = End(fault=fault, hopeless=True, needs_auth=True)
        return Ruling(code=HTTP_REFUSED, text="it needs the person to sign in first", end=end)

    def _end(
        self, what: str, why: str, fix: str = "", *, hopeless: bool = False, sse: bool = False
    ) -> End:
        fault = Fault(stage=Stage.HANDSHAKE, what=what, why=why, fix=fix)
        return End(fault=fault, hopeless=hopeless, try_sse=sse)


def bare(url: str) -> str:
    """Give an address without user, query and fragment, which may hold secrets."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "its url"
    return clip(visible(f"{parts.scheme}://{host}{parts.path}", single_line=True), 200)


def rpc_error(body: bytes) -> dict[str, Any] | None:
    """Give the error of a JSON-RPC error message, None when the body is none."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict) or value.get("jsonrpc") != "2.0":
        return None
    code, message = error.get("code"), error.get("message")
    whole = isinstance(code, int) and not isinstance(code, bool)
    return error if whole and isinstance(message, str) else None


def _session_gone(errand: Errand, status: int, said: str) -> bool:
    """Say whether a session is unknown to the server, in the words there are for it."""
    if not errand.session or errand.opening or errand.kind is Kind.STREAM:
        return False
    return status == 404 or (status == 400 and "session" in said.lower())


def _spoken(body: bytes) -> str:
    """Give what an error body says, in one clipped line; a web page says nothing."""
    text = body[:4096].decode("utf-8", "replace").strip()
    error = rpc_error(body)
    if error is not None:
        text = error["message"]
    elif text.startswith("<"):
        return ""
    return clip(visible(" ".join(text.split()), single_line=True), 200)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Give an error, and after it all it came from, the roots first."""
    seen: list[BaseException] = []
    waiting = [error]
    while waiting and len(seen) < 50:
        found = waiting.pop()
        if found in seen:
            continue
        seen.append(found)
        if isinstance(found, BaseExceptionGroup):
            waiting += found.exceptions
        waiting += [cause for cause in (found.__cause__, found.__context__) if cause is not None]
    return reversed(seen)
