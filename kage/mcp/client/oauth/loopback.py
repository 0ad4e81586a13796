"""The little page on 127.0.0.1 a sign-in comes back to, and the same answer pasted by hand."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from kage.core.sanitise import clip, visible
from kage.mcp.client.oauth.problems import Refused

HOST = "127.0.0.1"
PATH = "/callback"
MAX_REQUEST = 16 << 10  # bytes of a request's head
READ_WAIT = 10.0  # seconds a browser may take to send it
_PAGE = (
    '<!doctype html><meta charset="utf-8"><title>kage</title>'
    '<body style="font-family: sans-serif; margin: 4em">{text}'
)
_DONE = "<h1>You are signed in</h1><p>You can close this page and go back to kage."
_FAILED = "<h1>That did not work</h1><p>kage says why."
_UNKNOWN = "<h1>Nothing to see here</h1>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the authorization server sent the person back with."""

    state: str
    code: str = ""
    issuer: str | None = None
    error: str = ""  # OAuth error code
    description: str = ""


class PortTaken(Exception):
    """The fixed port of the configuration is used by another program."""


class Loopback:
    """Listens until one answer with the right ``state`` came, by browser or by :meth:`paste`."""

    def __init__(self) -> None:
        self._state = ""  # what an answer has to carry; "" = none is awaited yet
        self._answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None
        self._port = 0

    async def open(self, port: int, *, preferred: int = 0) -> None:
        """Listen on ``port``, or when it is 0 on ``preferred`` if that is free, else on any.

        Raises:
            PortTaken: ``port`` is in use.
            OSError: nothing can listen on 127.0.0.1.
        """
        for wanted in dict.fromkeys((port,) if port else (preferred, 0)):
            try:
                self._server = await asyncio.start_server(
                    self._serve, HOST, wanted, limit=MAX_REQUEST
                )
            except OSError as error:
                if port:
                    raise PortTaken(error.strerror or "it is in use") from None
                if not wanted:
                    raise
            else:
                self._port = self._server.sockets[0].getsockname()[1]
                return

    @property
    def redirect_uri(self) -> str:
        """Where the authorization server sends the person back to."""
        return f"http://{HOST}:{self._port}{PATH}"

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    def expect(self, state: str) -> None:
        """Wait for an answer that carries ``state``; one that came before no longer counts."""
        self._state = state
        if self._answer.done():
            self._answer = asyncio.get_running_loop().create_future()

    async def answer(self) -> Answer:
        """Wait for the answer."""
        return await asyncio.shield(self._answer)

    def paste(self, text: str) -> None:
        """Take an address the person copied from the browser.

        Raises:
            Refused: it is not the one awaited; the text says why, and waiting goes on.
        """
        answer = _read_answer(text.strip())
        if not self._awaited(answer):
            raise Refused("it belongs to another sign-in; copy the address of this one")
        self._settle(answer)

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _awaited(self, answer: Answer) -> bool:
        return bool(self._state) and secrets.compare_digest(
            answer.state.encode("utf-8", "replace"), self._state.encode()
        )

    def _settle(self, answer: Answer) -> None:
        if not self._answer.done():
            self._answer.set_result(answer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_WAIT):
                head = await reader.readuntil(b"\r\n\r\n")
                status, page, answer = self._judge(head.decode("latin-1"))
                writer.write(_response(status, page))
                await writer.drain()
        except (TimeoutError, asyncio.LimitOverrunError, asyncio.IncompleteReadError, OSError):
            answer = None
        finally:
            writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        if answer is not None:
            self._settle(answer)

    def _judge(self, head: str) -> tuple[str, str, Answer | None]:
        line, _, rest = head.partition("\r\n")
        method, _, target = line.partition(" ")
        target = target.partition(" ")[0]
        names = {f"{HOST}:{self._port}", f"localhost:{self._port}"}
        if method != "GET" or target.partition("?")[0] != PATH or _host(rest) not in names:
            return "404 Not Found", _UNKNOWN, None
        try:
            answer = _read_answer(target)
        except Refused:
            return "400 Bad Request", _UNKNOWN, None
        if not self._awaited(answer):  # a page somewhere may try its luck; the real one comes yet
            return "400 Bad Request", _UNKNOWN, None
        return "200 OK", _FAILED if answer.error else _DONE, answer


def _read_answer(text: str) -> Answer:
    """Take the answer out of a whole address, or of its query alone.

    Raises:
        Refused: there is none in it.
    """
    if len(text) > MAX_REQUEST:
        raise Refused("it is too long to be the address of the page you ended at")
    try:
        query = urlsplit(text).query or (text if "=" in text and "://" not in text else "")
        found = parse_qs(query.lstrip("?"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise Refused("it cannot be read as an address") from None
    if not any(found.get("code", [])) and not any(found.get("error", [])):
        raise Refused("it holds no code; copy the whole address of the page you ended at")
    if not any(found.get("state", [])):
        raise Refused("it holds no state; copy the whole address, not only the code")
    return Answer(
        state=_first(found, "state"),
        code=_first(found, "code"),
        issuer=found["iss"][0] if "iss" in found else None,
        error=_told(_first(found, "error"), 60),
        description=_told(_first(found, "error_description"), 300),
    )


def _told(text: str, limit: int) -> str:
    return clip(visible(text, single_line=True), limit)


def _first(found: Mapping[str, list[str]], name: str) -> str:
    return found.get(name, [""])[0]


def _host(headers: str) -> str:
    for line in headers.split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "host":
            return value.strip().lower()
    return ""


def _response(status: str, text: str) -> bytes:
    body = _PAGE.format(text=text).encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\n"
        "Referrer-Policy: no-referrer\r\n"
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
