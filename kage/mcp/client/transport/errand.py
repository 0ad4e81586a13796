"""What one HTTP request is for, by when it has to be done, and what of it was written."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from kage.mcp.client.wire.exchange import Exchange, Written, current_exchange

if TYPE_CHECKING:
    from mcp_types import JSONRPCMessage

NOTICE_LIMIT = 10.0  # seconds for what nobody waits for
GOODBYE_LIMIT = 2.0  # for ending a session
STREAM_LIMIT = 30.0  # until a stream of events begins
_SLACK = 15.0  # seconds a request may outlive the limits of its call
_GRACE = 5.0  # seconds an answer nobody waits for may still take

MAIL: ContextVar[JSONRPCMessage | None] = ContextVar("kage_mail", default=None)


class GivenUp(Exception):
    """Nobody waits for the request any more, and nothing of it was sent."""


class Kind(Enum):
    """What is asked of the server."""

    REQUEST = "request"  # has an id and an answer
    NOTICE = "notice"  # a notification, or an answer to the server
    STREAM = "stream"  # opens a stream of events
    GOODBYE = "goodbye"  # ends the session


class Term:
    """The moment by which something has to be done; None: any time. It can be brought nearer."""

    def __init__(self, seconds: float | None) -> None:
        self._time = asyncio.get_running_loop().time
        self._end = None if seconds is None else self._time() + seconds
        self._scope: asyncio.Timeout | None = None

    def running(self) -> asyncio.Timeout:
        """Give a scope that raises TimeoutError when the moment comes."""
        self._scope = asyncio.timeout_at(self._end)
        return self._scope

    def at_most(self, seconds: float | None) -> None:
        """Leave ``seconds`` from now, unless there are fewer."""
        if seconds is None:
            return
        end = self._time() + seconds
        self._end = end if self._end is None else min(self._end, end)
        self._reschedule()

    def lift(self) -> None:
        """Take the limit away."""
        self._end = None
        self._reschedule()

    def _reschedule(self) -> None:
        if self._scope is not None and not self._scope.expired():
            try:
                self._scope.reschedule(self._end)
            except RuntimeError:  # it is not running; the next one gets the new moment
                self._scope = None


@dataclass(slots=True, kw_only=True)
class Errand:
    """One request on its way."""

    kind: Kind
    term: Term
    id: int | str | None = None  # of the JSON-RPC request
    method: str = ""  # of the JSON-RPC message
    opening: bool = False  # part of the handshake
    session: bool = False  # it names a session
    exchange: Exchange | None = None

    @property
    def idle(self) -> bool:
        """Whether nobody waits for what it would bring."""
        return self.exchange is not None and self.exchange.over

    def begun(self) -> None:
        """Take note that a stream of events began: it stays while somebody waits for it."""
        self.term.lift()
        if self.exchange is not None:
            self.exchange.on_over(lambda: self.term.at_most(_GRACE))

    async def trace(self, event: str, info: dict[str, Any]) -> None:
        """Note how far the bytes are; called by the HTTP library.

        Raises:
            GivenUp: the call was given up before anything was sent.
        """
        if self.exchange is None or self.kind is not Kind.REQUEST:
            return
        if event.endswith("send_request_headers.started") and not self.exchange.begin():
            raise GivenUp
        if event.endswith("send_request_body.complete"):
            self.exchange.written = Written.YES


def make_errand(http_method: str, *, opening: bool, session: bool, longest: float) -> Errand:
    """Tell what a request of the SDK is for, from the message it carries.

    Args:
        longest: Seconds the longest call may take, 0: any time.
    """
    if http_method == "DELETE":
        return Errand(kind=Kind.GOODBYE, term=Term(GOODBYE_LIMIT), session=session)
    message = MAIL.get()
    method = getattr(message, "method", "")
    request = getattr(message, "id", None)
    if http_method == "GET":  # in the name of a request it resumes that one's answer
        exchange = current_exchange() if method and request is not None else None
        return Errand(
            kind=Kind.STREAM,
            term=Term(STREAM_LIMIT),
            id=request if method else None,
            session=session,
            exchange=exchange,
        )
    if not method or request is None:
        return Errand(kind=Kind.NOTICE, term=Term(NOTICE_LIMIT), method=method, session=session)
    exchange = current_exchange()
    limited = longest > 0 and method != "subscriptions/listen"
    errand = Errand(
        kind=Kind.REQUEST,
        term=Term(longest + _SLACK if limited else None),
        id=request,
        method=method,
        opening=opening,
        session=session,
        exchange=exchange,
    )
    if exchange is not None:
        exchange.on_over(lambda: errand.term.at_most(_GRACE))
    return errand
