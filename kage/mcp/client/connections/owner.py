"""The one task that enters the SDK's client, stays inside, and leaves it again.

Its scopes must end in the task they began in. It is told to leave by an event and never
cancelled twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import kage
from kage.mcp.client import faults
from kage.mcp.client.wire.ends import Reader, Writer
from kage.mcp.client.wire.tap import Tap

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp.client._transport import Transport

_WAIT = 0.4  # seconds it gets to leave the SDK before what it stands on is closed


class Owner:
    """Holds the SDK's client of one connection.

    Args:
        legacy: Shake hands at once instead of asking for the era first.
        declared: Gives the arguments of the SDK's client that declare what servers may ask.
        broke: Told the reason when the client ends by itself after the handshake.
    """

    def __init__(
        self,
        tap: Tap,
        *,
        server: str,
        legacy: bool,
        declared: Callable[[], dict[str, Any]],
        broke: Callable[[BaseException], None],
    ) -> None:
        self.client: Client | None = None  # once the handshake went well
        self.failure: BaseException | None = None
        self.settled = asyncio.Event()  # the handshake is over, well or not
        self._tap = tap
        self._legacy = legacy
        self._declared = declared
        self._broke = broke
        self._leave = asyncio.Event()
        self._task = asyncio.create_task(self._own(), name=f"own {server}")

    def leave(self) -> None:
        """Tell the task to leave."""
        self._leave.set()

    async def left(self) -> None:
        """Wait a moment until it has left."""
        await asyncio.wait([self._task], timeout=_WAIT)

    async def end(self) -> None:
        """Cancel it when it has not left, now that nothing carries it any more."""
        if not self._task.done():
            self._task.cancel()
            await self.left()

    async def _own(self) -> None:
        from mcp.client import Client
        from mcp_types import Implementation

        try:
            streams = cast("Transport", self._handshake_told())  # it only names the streams
            async with Client(
                streams,
                mode="legacy" if self._legacy else "auto",
                cache=None,
                client_info=Implementation(name="kage", version=kage.__version__),
                **self._declared(),
            ) as client:
                self.client = client
                self.settled.set()
                await self._leave.wait()
        except (Exception, BaseExceptionGroup) as error:  # boundary: reported as this one's fault
            self.failure = faults.first_cause(error)
            if self.client is not None:
                self._broke(error)
        finally:
            self.settled.set()
            self._tap.close()

    @asynccontextmanager
    async def _handshake_told(self) -> AsyncIterator[tuple[Reader, Writer]]:
        """Tell a failed handshake before the link is closed, which takes its time."""
        async with self._tap.streams() as pair:
            try:
                yield pair
            except (Exception, BaseExceptionGroup) as error:
                self.failure = faults.first_cause(error)
                raise
            finally:
                self.settled.set()
