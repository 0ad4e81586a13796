"""Hands messages to a transport, one after the other, so that it is known whether it took them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from kage.mcp.client.wire.exchange import Exchange, Written

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage


class Outlet:
    """The way out of one tap; it leads nowhere before ``writer`` is set and after ``close``."""

    def __init__(self) -> None:
        self.writer: Any = None  # the SDK's WriteStream
        self.closed = False
        self._lock = asyncio.Lock()

    async def write(self, item: SessionMessage, exchange: Exchange | None = None) -> None:
        """Write one message; ``exchange`` is told how far it got.

        A plain ``send`` that is cancelled leaves that open.

        Raises:
            anyio.ClosedResourceError: the connection is closed.
        """
        async with self._lock:
            await self._hand_over(item, exchange or Exchange())

    def close(self) -> None:
        """Write no more; whoever waits to write stops."""
        self.closed = True

    async def _hand_over(self, item: SessionMessage, exchange: Exchange) -> None:
        from anyio import ClosedResourceError, WouldBlock

        if getattr(self.writer, "marks", False):  # it notes by itself what it really wrote
            await self.writer.send(item)
            return
        take = getattr(self.writer, "send_nowait", None)
        if take is None:
            exchange.written = Written.BEGUN
            await self.writer.send(item)
            exchange.written = Written.YES
            return
        pause = 0.0
        while not self.closed:
            try:
                take(item)
            except WouldBlock:  # it is still writing the one before
                await asyncio.sleep(pause)
                pause = min(pause + 0.001, 0.02)
            else:
                exchange.written = Written.YES
                return
        raise ClosedResourceError
