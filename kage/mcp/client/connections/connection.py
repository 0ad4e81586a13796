"""One live connection to one server, from its start to its end, whatever carries it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kage.config.schema import ServerSpec
from kage.core.ids import new_id
from kage.core.servers import Fault, Stage
from kage.core.tools import ToolResult
from kage.mcp.client import faults
from kage.mcp.client.calling.definitions import Listing
from kage.mcp.client.calling.talk import Talk
from kage.mcp.client.connections.ending import Ending
from kage.mcp.client.connections.handshake import Handshake
from kage.mcp.client.faults import StartFailed
from kage.mcp.client.offers.entries import Misread
from kage.mcp.client.offers.lists import OfferLists, changes, follow_changes, offer_lists
from kage.mcp.client.servers.journal import Journal
from kage.mcp.client.servers.judging import Judged
from kage.mcp.client.servers.recipe import Recipe
from kage.mcp.client.services import Services
from kage.mcp.client.transport.links import make_link
from kage.mcp.client.wire.exchange import Progress

if TYPE_CHECKING:
    pass

_MAX_TEXT = 64 << 10  # characters of instructions kept


class Connection:
    """A link to a server and the SDK client that talks over it.

    Args:
        line: The id decisions are bound to; "": one of its own.
        sse: Speak the older HTTP transport instead of the one the entry names.
        legacy: Shake hands at once instead of asking for the era first.
        changed: Called whenever the server says that its tools changed.
    """

    def __init__(
        self,
        recipe: Recipe,
        services: Services,
        journal: Journal,
        *,
        line: str = "",
        sse: bool = False,
        legacy: bool = False,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.id = line or new_id("c")
        self.recipe = recipe
        self.since = 0.0  # monotonic seconds; 0 while it is coming up
        self.listing = Listing()
        self.judged = Judged()  # of that list, what may be offered; set by whoever holds it
        self.offer_lists: OfferLists | None = None  # prompts and resources, once it is open
        self.sse = sse or recipe.spec.transport == "sse"
        self._spec = recipe.spec
        self._services = services
        self._stage = Stage.SPAWN
        self._link = make_link(recipe, services, journal, sse=self.sse)
        self._hands = Handshake(
            recipe, services, journal, line=self.id, legacy=legacy, changed=changed
        )
        self._talk: Talk | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._ending = Ending(self._link, server=recipe.spec.name, then=self._hands.leave)

    # ---- what it is

    @property
    def pid(self) -> int | None:
        """The server's process, None before its start and where kage started none."""
        return self._link.pid

    @property
    def protocol(self) -> str:
        """The revision spoken, "" before the handshake."""
        return self._hands.protocol

    @property
    def version(self) -> str:
        """The server's name and version, as it says."""
        return self._hands.version

    @property
    def instructions(self) -> str:
        """What the server wants the model to know, as far as anybody would read."""
        return self._hands.instructions

    @property
    def modern(self) -> bool:
        """Whether it speaks the era without handshake."""
        return self._hands.modern

    @property
    def notifies(self) -> bool:
        """Whether change notices have to be asked for; an older server sends them unasked."""
        return self.modern and any(changes(self._hands.client))

    @property
    def stray_lines(self) -> int:
        """How much came that was no protocol."""
        return self._link.strays

    @property
    def closed(self) -> asyncio.Event:
        """Set when no call goes through any more; ``death`` says why."""
        return self._ending.closed

    @property
    def death(self) -> Fault | None:
        """Why it ended, None while it is well."""
        return self._ending.fault

    @property
    def needs_auth(self) -> bool:
        """Whether it ended because a person has to sign in."""
        return self._ending.needs_auth

    @property
    def misses(self) -> int:
        """How many unanswered pings in a row mean that the server is gone."""
        return self._link.misses

    @property
    def open_calls(self) -> int:
        """How many calls run or wait for their turn."""
        return self._talk.open_calls if self._talk is not None else 0

    # ---- its life

    async def open(self) -> None:
        """Reach the server, shake hands and list the tools, all within the entry's ``timeout``.

        Raises:
            StartFailed: :meth:`close` still has to be called, as after a cancellation.
        """
        limit = self._spec.timeout
        try:
            async with asyncio.timeout(limit):
                await self._link.open()
            self._watcher = asyncio.create_task(
                self._ending.watch(lambda: self._stage if not self.since else Stage.EXIT),
                name=f"watch {self._spec.name}",
            )
            await self._services.sdk.load()  # while the server starts; not on its account
            async with asyncio.timeout(limit):
                await self._shake_hands()
                self._stage = Stage.LIST
                self.listing = await self._listed()
            assert self._talk is not None
            self.offer_lists = self._offered()
            await self.offer_lists.begin()
            self._hands.remember()
            self.since = time.monotonic()
        except TimeoutError:
            fault = faults.silent(
                self._spec.name,
                self._stage,
                limit,
                stderr=self._link.last_lines(),
                url=self._spec.url,
            )
            raise StartFailed(fault) from None

    async def close(self) -> None:
        """End the connection and the whole process group; takes at most about 5 s."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"close {self._spec.name}")
        await asyncio.shield(self._closing)

    def adjust(self, spec: ServerSpec) -> None:
        """Go by the limits of ``spec`` from now on; it starts or reaches the same."""
        self._spec = spec
        if self._talk is not None:
            self._talk.adjust(spec)
        if self._hands.chat is not None:
            self._hands.chat.adjust(spec)

    def fail(self, fault: Fault, *, needs_auth: bool = False) -> None:
        """Give the connection up; :meth:`close` still has to be called.

        Args:
            needs_auth: Whether a person has to sign in before there is another.
        """
        self._ending.needs_auth = self._ending.needs_auth or needs_auth
        self._ending.give_up(fault)

    async def drain(self, limit: float) -> None:
        """Wait until no call is open, at most ``limit`` seconds."""
        if self._talk is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit):
                    await self._talk.idle.wait()

    # ---- what it is for

    async def call_tool(
        self,
        tool: str,
        arguments: Mapping[str, object],
        *,
        progress: Progress,
        output_schema: Mapping[str, object] | None = None,
    ) -> ToolResult:
        """Call a tool by its name on the wire; every failure is a result, see ``Talk``."""
        assert self._talk is not None, "a tool exists only once its connection is open"
        return await self._talk.call_tool(
            tool, arguments, progress=progress, output_schema=output_schema
        )

    async def list_tools(self) -> Listing:
        """List again, within the entry's ``timeout``.

        Raises:
            StartFailed: the list could not be had; the connection stays.
        """
        self._stage = Stage.LIST
        try:
            async with asyncio.timeout(self._spec.timeout):
                self.listing = await self._listed()
        except TimeoutError:
            seconds = self._spec.timeout
            fault = faults.silent(self._spec.name, Stage.LIST, seconds, url=self._spec.url)
            raise StartFailed(fault) from None
        return self.listing

    async def subscribe(self) -> None:
        """Ask a modern server for change notices and stay until they end.

        Raises:
            mcp.MCPError: it refused, or the connection closed.
            RuntimeError: the subscription broke off.
        """
        assert self._hands.client is not None
        await follow_changes(self._hands.client)

    async def set_log_level(self, level: str) -> bool:
        """Choose what the server tells of itself; False when it keeps no log."""
        chat = self._hands.chat
        return chat is not None and await chat.set_log_level(level)

    async def ping(self) -> bool:
        """Ask whether the server is well."""
        return self._talk is not None and await self._talk.ping()

    # ---- inside

    async def _shake_hands(self) -> None:
        self._stage = Stage.HANDSHAKE
        hands = self._hands
        await hands.shake(self._link, self._ending)
        assert hands.owner is not None and hands.chat is not None
        if hands.client is None or self.closed.is_set():
            raise await self._start_failure(hands.owner.failure)
        self._talk = Talk(
            hands.client,
            spec=self._spec,
            redact=self._services.redactor,
            closed=self.closed,
            fail=self._ending.give_up,
            death=self._ending.explain,
            stalled=lambda: self._link.stalled,
            direct=lambda: hands.tap.direct if hands.tap is not None else None,
        )
        self._talk.reception = hands.chat.reception
        await hands.chat.settle(hands.client, self._talk.send)

    def _offered(self) -> OfferLists:
        client, talk, tap = self._hands.client, self._talk, self._hands.tap
        assert client is not None and talk is not None and tap is not None
        lists = offer_lists(
            client, talk, self._spec, redact=self._services.redactor, gone=self._ending.words
        )
        lists.take.reception = talk.reception
        tap.notices.offered = lists.told
        return lists

    async def _listed(self) -> Listing:
        from mcp import MCPError

        assert self._talk is not None
        try:
            return self._link.sift(await self._talk.list_tools(), modern=self.modern)
        except (MCPError, Misread, ValueError) as error:
            raise await self._start_failure(error) from None

    async def _start_failure(self, error: BaseException | None) -> StartFailed:
        probing = self._hands.probing
        return await self._ending.start_failure(self._stage, error, probing=probing)

    async def _close(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
        self._ending.stopped()
        owner = self._hands.owner
        if owner is not None:
            await owner.left()
        await self._link.close()
        if owner is not None:
            await owner.end()
