"""What a connection needs of the way to its server, whatever carries it."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kage.core.servers import Fault, Stage

if TYPE_CHECKING:
    from kage.mcp.client.calling.definitions import Listing

# kage's own JSON-RPC codes, for answers made here; two more are in ``parse``
ANSWER_LOST = -32012  # there was none: the way broke, or a gateway answered in its place
HTTP_REFUSED = -32013  # an HTTP status that says the request was not acted on

Streams = AbstractAsyncContextManager[tuple[Any, Any]]  # the SDK's pair, typed only by it


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Why nothing comes over a link any more."""

    fault: Fault
    died: bool = False  # a process ended
    hopeless: bool = False  # another try ends the same way
    needs_auth: bool = False  # a person has to sign in first
    try_sse: bool = False  # the address may speak the older HTTP transport


class Link(Protocol):
    """The way to one server, used once: a process that is started, or an address."""

    @property
    def pid(self) -> int | None:
        """The server's process; None without one."""
        ...

    @property
    def strays(self) -> int:
        """How much came that was no protocol."""
        ...

    @property
    def stalled(self) -> bool:
        """Whether the server takes nothing of a message under way."""
        ...

    @property
    def misses(self) -> int:
        """How many unanswered health checks in a row mean that the server is gone."""
        ...

    @property
    def probe_wait(self) -> float:
        """How many seconds an older server may stay silent on the question for its era."""
        ...

    async def open(self) -> None:
        """Do what has to be done before the first message; needs no SDK.

        Raises:
            StartFailed: it cannot be; :meth:`close` still has to be called.
        """
        ...

    def streams(self) -> Streams:
        """Give the pair the tap wraps; leaving the context closes the link."""
        ...

    def sift(self, listing: Listing, *, modern: bool) -> Listing:
        """Take note of what the server lists; give what may be called over this link."""
        ...

    async def over(self, silent: asyncio.Event) -> None:
        """Wait until the link has ended and its last messages were read.

        Args:
            silent: Set when the streams gave their last message.
        """
        ...

    def explain(self, stage: Stage) -> End | None:
        """Say why it ended, or why it cannot be used, as seen in ``stage``; None: it is well."""
        ...

    def last_lines(self) -> tuple[str, ...]:
        """Give the last lines the server wrote for people, where kage holds them."""
        ...

    async def close(self) -> None:
        """End it; whatever runs for it is gone afterwards. Asking again joins."""
        ...
