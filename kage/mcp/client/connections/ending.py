"""Why one connection is over, or never came up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from kage.core.servers import Fault, Stage
from kage.mcp.client import faults
from kage.mcp.client.faults import StartFailed
from kage.mcp.client.transport.base import Link

EXPLAINED = 2.0  # seconds the end of a link may take to be explained


class Ending:
    """The end of a connection, from the first sign of it to its explanation.

    Args:
        server: The name of the entry.
        then: Called each time somebody gives the connection up.
    """

    def __init__(self, link: Link, *, server: str, then: Callable[[], None]) -> None:
        self.closed = asyncio.Event()  # no call goes through any more; ``fault`` says why
        self.silent = asyncio.Event()  # nothing more comes from the server
        self.fault: Fault | None = None
        self.needs_auth = False  # a person has to sign in first
        self._link = link
        self._server = server
        self._then = then
        self._explained = asyncio.Event()  # ``fault`` will not change any more

    async def watch(self, stage: Callable[[], Stage]) -> None:
        """Notice the end of the link without any call."""
        await self._link.over(self.silent)
        end = self._link.explain(stage())
        if end is not None:
            self.needs_auth = end.needs_auth
            self.give_up(end.fault)
        self._explained.set()

    def give_up(self, fault: Fault) -> None:
        """End it; the first reason counts."""
        if self.fault is None:
            self.fault = fault
        self.closed.set()
        self._then()

    def broke(self, error: BaseException) -> None:
        """End it because the SDK's client ended by itself."""
        stderr = self._link.last_lines()
        self.give_up(faults.misspoke(self._server, Stage.CALL, error, stderr=stderr))

    def stopped(self) -> None:
        """End it because kage wants to."""
        what = f"kage stopped the server {self._server}"
        self.give_up(Fault(stage=Stage.EXIT, what=what))
        self._explained.set()

    async def explain(self, seconds: float) -> Fault | None:
        """Give the reason, waiting at most ``seconds`` until it is known; None: it is well."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._explained.wait()
        return self.fault

    async def words(self) -> str:
        """Say the reason in one line, "" when it is well."""
        fault = await self.explain(EXPLAINED)
        return ": ".join(filter(None, (fault.what, fault.why))) if fault is not None else ""

    async def start_failure(
        self, stage: Stage, error: BaseException | None, *, probing: bool
    ) -> StartFailed:
        """Say why the start came to nothing: the link ended, or it said the wrong thing.

        Args:
            probing: Whether the question for the era was open.
        """
        if self.silent.is_set():
            await self.explain(EXPLAINED)
        end = self._link.explain(stage)
        # a client that gave up by itself ends the process on its way out, which explains nothing
        gave_up = error is not None and not faults.is_closed(error)
        if end is not None and not (end.died and gave_up):
            return StartFailed(
                end.fault,
                hopeless=end.hopeless,
                on_probe=end.died and probing,
                needs_auth=end.needs_auth,
                try_sse=end.try_sse,
            )
        cause = error or RuntimeError("it gave no reason")
        stderr = self._link.last_lines()
        if faults.is_version_clash(cause):
            clash = faults.version_clash(self._server, cause, stderr=stderr)
            return StartFailed(clash, hopeless=True)
        return StartFailed(faults.misspoke(self._server, stage, cause, stderr=stderr))
