"""The link to a server kage starts: a process, its streams, and how its end reads."""

from __future__ import annotations

import asyncio

from kage.core.errors import ServerError
from kage.core.processes import Spawner
from kage.core.servers import Fault, Stage
from kage.mcp.client import faults
from kage.mcp.client.calling.definitions import Listing
from kage.mcp.client.connections.era import PROBE_WAIT
from kage.mcp.client.faults import StartFailed
from kage.mcp.client.servers.journal import Journal
from kage.mcp.client.servers.recipe import Recipe
from kage.mcp.client.transport.base import End, Streams
from kage.mcp.client.transport.launch import Launch
from kage.mcp.client.transport.stdio import StdioTransport

LAST_WORDS = 0.5  # seconds answers may still come after the process ended
EXIT_WAIT = 1.0  # seconds a process that closed its stdout gets to end by itself


class ProcessLink:
    """A server process; ``misses``: it answers on a pipe, so silence is no network's fault."""

    misses = 1
    probe_wait = PROBE_WAIT

    def __init__(self, recipe: Recipe, spawner: Spawner, journal: Journal) -> None:
        assert isinstance(recipe.target, Launch), "the entry has a command"
        self._server = recipe.spec.name
        self._argv = recipe.target.argv
        self._piped = recipe.stderr == "pipe"
        self._journal = journal
        self._transport = StdioTransport(
            recipe.target,
            spawner=spawner,
            stderr=recipe.stderr,
            on_stderr=self._heard,
            on_stray=journal.stray,
            max_message_bytes=recipe.spec.max_message_bytes,
        )
        self._exit_code: int | None = None
        self._over = False
        self._said = 0  # lines of its stderr

    @property
    def pid(self) -> int | None:
        """The process, None before its start."""
        return self._transport.pid

    @property
    def strays(self) -> int:
        """Lines on its stdout that were no protocol."""
        return self._transport.traffic.strays if self._transport.traffic is not None else 0

    @property
    def stalled(self) -> bool:
        """Whether it reads nothing of a message under way."""
        return self._transport.stalled_since is not None

    async def open(self) -> None:
        """Start the process.

        Raises:
            StartFailed: it cannot be started, now or later.
        """
        try:
            await self._transport.spawn()
        except ServerError as error:
            raise StartFailed(faults.to_fault(error), hopeless=True) from None

    def streams(self) -> Streams:
        """Give its stdin and stdout as the tap takes them."""
        return self._transport.streams()

    def sift(self, listing: Listing, *, modern: bool) -> Listing:
        """Give all of it: what concerns headers is no concern of a pipe."""
        return listing

    async def over(self, silent: asyncio.Event) -> None:
        """Notice the end of the process, or of its output, without any call."""
        exited = asyncio.ensure_future(self._transport.wait())
        quiet = asyncio.ensure_future(silent.wait())
        try:
            await asyncio.wait([exited, quiet], return_when=asyncio.FIRST_COMPLETED)
            # a grandchild may hold the pipe open, and a server may close it and live on
            if exited.done():
                await asyncio.wait([quiet], timeout=LAST_WORDS)
            else:
                await asyncio.wait([exited], timeout=EXIT_WAIT)
            self._exit_code = exited.result() if exited.done() else None
            self._over = True
        finally:
            exited.cancel()
            quiet.cancel()

    def explain(self, stage: Stage) -> End | None:
        """Say how it ended; a process that only closed its output lives on."""
        if self._exit_code is not None:
            fault = faults.exited(
                self._server,
                stage,
                self._argv,
                code=self._exit_code,
                stderr=self.last_lines(),
                piped=self._piped,
            )
            return End(fault=fault, died=True)
        if not self._over:
            return None
        why = self._transport.ended or "it closed its output and went on running"
        if stage is not Stage.EXIT:
            cause = RuntimeError(self._transport.ended or "it closed its output")
            return End(fault=faults.misspoke(self._server, stage, cause, stderr=self.last_lines()))
        return End(
            fault=Fault(
                stage=stage,
                what=f"The connection to the server {self._server} ended",
                why=why,
                fix=f"Restart it: /mcp restart {self._server} in the chat",
                stderr=self.last_lines(),
            )
        )

    def _heard(self, line: str) -> None:
        self._said += 1
        self._journal.stderr(line)

    def last_lines(self) -> tuple[str, ...]:
        """Give the end of its stderr where kage holds that pipe."""
        # the journal goes on from try to try; what this process did not say explains nothing
        return self._journal.last(min(faults.LAST_LINES, self._said)) if self._piped else ()

    async def close(self) -> None:
        """End the whole process group."""
        await self._transport.close()
