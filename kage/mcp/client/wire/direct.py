"""Calls of tools past the SDK's dispatcher, which costs more than all the rest of a call.

A call needs nothing of the SDK but what it stamps on every request of the connection, which is
learned from the list of tools (its headers over HTTP: ``transport/posts.py``). Everything goes
through the tap all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from kage.mcp.client.wire.exchange import Exchange

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCRequest

_FIRST = 1 << 60  # the SDK counts from 1


class Direct:
    """The calls of one connection that kage itself waits for.

    Args:
        send: Takes a message as the SDK would hand it over.
    """

    def __init__(self, send: Callable[[SessionMessage], Awaitable[None]]) -> None:
        self._send = send
        self._numbers = itertools.count(_FIRST)
        self._stamp: Mapping[str, Any] | None = None
        self._waiting: set[asyncio.Future[None]] = set()
        self._closed = False

    @property
    def ready(self) -> bool:
        """Whether it is known what goes along with a request."""
        return self._stamp is not None

    def learn(self, request: JSONRPCRequest) -> None:
        """Look at a request of the SDK for what it stamps on each."""
        if self._stamp is None and request.method == "tools/list":
            self._stamp = (request.params or {}).get("_meta") or {}

    async def call(self, params: Mapping[str, Any], exchange: Exchange) -> None:
        """Send a ``tools/call`` and wait; ``exchange`` holds the raw answer then.

        Cancelling tells the server.

        Raises:
            mcp.MCPError: the server refused, or the connection closed.
            Refused: no open decision covers it; nothing was written.
        """
        from anyio import ClosedResourceError
        from mcp import MCPError
        from mcp.shared.message import SessionMessage
        from mcp_types import CONNECTION_CLOSED, JSONRPCRequest

        number = next(self._numbers)
        sent = {**params, "_meta": dict(self._stamp or {})}
        request = JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/call", params=sent)
        answered = exchange.answered = asyncio.get_running_loop().create_future()
        self._waiting.add(answered)
        try:
            if not self._closed:
                await self._send(SessionMessage(request))
                await answered
            if exchange.result is None and exchange.error is None:
                raise ClosedResourceError
        except ClosedResourceError:
            raise MCPError(code=CONNECTION_CLOSED, message="Connection closed") from None
        except asyncio.CancelledError:
            await self._cancel(number)
            raise
        finally:
            self._waiting.discard(answered)
        if exchange.error is not None:
            code, message = exchange.error
            raise MCPError(code=code, message=message)

    def answered(self, exchange: Exchange) -> bool:
        """Take note of an answer; False when it is the SDK that waits for it."""
        waiting = exchange.answered
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
        return waiting is not None

    def close(self) -> None:
        """Tell every waiting call that the connection is over."""
        self._closed = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)  # without an answer, which says the same

    async def _cancel(self, number: int) -> None:
        from anyio import ClosedResourceError
        from mcp.shared.message import SessionMessage
        from mcp_types import JSONRPCNotification

        params = {"requestId": number, "reason": "cancelled"}
        notice = JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)
        with contextlib.suppress(ClosedResourceError):  # there may be nobody to tell any more
            await self._send(SessionMessage(notice))
