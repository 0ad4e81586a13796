"""Requests over one live connection: list the tools, call one, ask whether it is well.

Each has a deadline of its own around the SDK, whose clock starts only once a message is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from kage.config.schema import ServerSpec
from kage.core.canonical import NotCanonical, canonical
from kage.core.errors import Refused
from kage.core.servers import Fault, Stage
from kage.core.tools import ToolResult
from kage.mcp.client.asking.reception import VISIT_FIRST, Reception
from kage.mcp.client.asking.rounds import Stuck, Subject
from kage.mcp.client.calling import calls
from kage.mcp.client.calling.definitions import Listing, judge
from kage.mcp.client.calling.limits import CallClock
from kage.mcp.client.calling.results import tool_result
from kage.mcp.client.faults import reason
from kage.mcp.client.offers.entries import Misread
from kage.mcp.client.transport.base import ANSWER_LOST
from kage.mcp.client.wire.direct import Direct
from kage.mcp.client.wire.exchange import Exchange, Progress, Written
from kage.mcp.client.wire.wash import heavy, weight

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp_types import (
        ClientRequest,
        ListPromptsRequest,
        ListResourcesRequest,
        ListResourceTemplatesRequest,
        ListToolsRequest,
    )

    ListRequest = (
        type[ListToolsRequest]
        | type[ListPromptsRequest]
        | type[ListResourcesRequest]
        | type[ListResourceTemplatesRequest]
    )

MAX_PAGES = 1_000
MAX_TOOLS = 10_000
PING_LIMIT = 10.0  # seconds
MAX_LETTERS = 64 << 20  # of one whole list; more is only there to fill the memory
_IN_A_THREAD = 200  # entries; judging more would hold up the loop
_HALF_WAIT = 0.2  # seconds an unreadable answer may turn out to be a dying server's last
_DEATH_WAIT = 1.0  # seconds until a closed pipe is explained by an exit code


class Talk:
    """One connection's requests.

    Args:
        fail: Ends the connection with a fault.
        death: Waits at most the given seconds until the connection's end is explained.
        stalled: Whether the server takes nothing of a message under way.
        direct: Gives the way of calls past the SDK, where there is one.
    """

    def __init__(
        self,
        client: Client,
        *,
        spec: ServerSpec,
        redact: Callable[[str], str],
        closed: asyncio.Event,
        fail: Callable[[Fault], None],
        death: Callable[[float], Awaitable[Fault | None]],
        stalled: Callable[[], bool],
        direct: Callable[[], Direct | None] = lambda: None,
    ) -> None:
        self._client = client
        self._spec = spec
        self._redact = redact
        self._closed = closed
        self._fail = fail
        self._death = death
        self._stalled = stalled
        self._direct = direct
        self._slots = asyncio.Semaphore(max(1, spec.max_parallel_calls))
        self._one_list = asyncio.Lock()
        self.reception: Reception | None = None  # answers what calls ask back
        self.open_calls = 0
        self.idle = asyncio.Event()  # no call is open
        self.idle.set()

    @property
    def modern(self) -> bool:
        """Whether the connection speaks the era without handshake."""
        return self._client.session.discover_result is not None

    def adjust(self, spec: ServerSpec) -> None:
        """Go by the limits of ``spec`` from now on; calls under way keep theirs."""
        if spec.max_parallel_calls != self._spec.max_parallel_calls:
            self._slots = asyncio.Semaphore(max(1, spec.max_parallel_calls))
        self._spec = spec

    async def list_tools(self) -> Listing:
        """Fetch all pages of ``tools/list``, one list at a time.

        Raises:
            Misread: an answer was no list of tools.
            mcp.MCPError: the server refused, or the connection closed.
        """
        from mcp_types import ListToolsRequest

        if self._client.server_capabilities.tools is None:
            return Listing()
        async with self._one_list:
            entries, note = await self.pages(ListToolsRequest, "tools", MAX_TOOLS)
        heavy = len(entries) > _IN_A_THREAD
        judged = functools.partial(judge, entries, self._redact)
        listing = await asyncio.to_thread(judged) if heavy else judged()
        if not note:
            return listing
        return Listing(tools=listing.tools, dropped=(*listing.dropped, note))

    async def pages(self, kind: ListRequest, key: str, most: int) -> tuple[list[object], str]:
        """Fetch all pages of a list, entries as they came; the text says what was left out.

        Raises:
            Misread: an answer was no such list.
            mcp.MCPError: the server refused, or the connection closed.
        """
        from mcp_types import PaginatedRequestParams

        entries: list[object] = []
        seen: set[str] = set()
        cursor: str | None = None
        room = MAX_LETTERS
        for number in range(MAX_PAGES):
            params = PaginatedRequestParams(cursor=cursor) if cursor is not None else None
            exchange = Exchange()
            await self.send(kind(params=params), exchange)
            raw = exchange.result or {}
            page = raw.get(key)
            if not isinstance(page, list):
                raise Misread(f"it answered {key}/list with no list of {key}")
            page = page[: most - len(entries)]
            weighing = functools.partial(weight, page, each=16, most=room + 1)
            room -= await asyncio.to_thread(weighing) if heavy(page) else weighing()
            if room < 0:
                return entries, f"everything after page {number}: the list is too long"
            entries += page
            following = raw.get("nextCursor")  # opaque: goes back as it came
            if not isinstance(following, str) or not following:
                return entries, ""
            if len(entries) >= most:
                return entries, f"everything after the first {most}: that is the limit"
            if following in seen:
                return entries, "everything after a page that came twice: the list goes in circles"
            seen.add(following)
            cursor = following
        return entries, f"everything after page {MAX_PAGES}: that is the limit"

    async def ping(self) -> bool:
        """Ask whether the server is well; any answer counts, silence for 10 s does not."""
        from mcp import MCPError
        from mcp_types import DiscoverRequest, PingRequest

        exchange = Exchange()
        with contextlib.suppress(TimeoutError, MCPError, ValueError):
            async with asyncio.timeout(PING_LIMIT):
                await self.send(DiscoverRequest() if self.modern else PingRequest(), exchange)
        answered = exchange.error is not None and exchange.error[0] != ANSWER_LOST
        return exchange.result is not None or answered

    async def call_tool(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        progress: Progress,
        output_schema: Mapping[str, Any] | None,
    ) -> ToolResult:
        """Call ``tool`` once, by its name on the wire, and say how it ended.

        Cancelling tells the server and keeps the connection. Every failure is a result.
        """
        server = self._spec.name
        try:
            canonical(arguments)
        except NotCanonical as error:
            return calls.refused(server, tool, str(error))
        self.open_calls += 1
        self.idle.clear()
        try:
            async with self._slots:
                if self._closed.is_set():
                    return await self._broken(tool, Exchange(), 0.0)
                return await self._call(tool, arguments, progress, output_schema)
        finally:
            self.open_calls -= 1
            if not self.open_calls:
                self.idle.set()

    async def _call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        progress: Progress,
        output_schema: Mapping[str, Any] | None,
    ) -> ToolResult:
        from mcp import MCPError

        from kage.mcp.client.transport.parse import ANSWER_TOO_LONG, INVALID_ANSWER

        server = self._spec.name
        clock = CallClock(self._spec, tool)

        exchange = Exchange(progress=progress, beat=clock.beat)
        try:
            async with clock.running():
                await self._converse(tool, dict(arguments), exchange, clock)
        except Stuck as error:
            return calls.stuck(server, tool, str(error))
        except Refused as error:
            return calls.refused(server, tool, error.why or error.what)
        except MCPError:
            if exchange.error is not None:
                code, message = exchange.error
                if code == INVALID_ANSWER and await self._death(_HALF_WAIT) is not None:
                    return await self._broken(tool, exchange, clock.elapsed)  # half an answer
                if code == VISIT_FIRST and self.reception is not None:
                    pages, agreed = await self.reception.visit(exchange.error_data, tool)
                    return calls.visited(server, tool, pages=pages, agreed=agreed)
                if code in (INVALID_ANSWER, ANSWER_TOO_LONG):
                    return calls.garbled(server, tool, message)
                if code == ANSWER_LOST:
                    return calls.lost(
                        server,
                        tool,
                        why=message,
                        elapsed=clock.elapsed,
                        sent=exchange.written is not Written.NO,
                    )
                return calls.rejected(server, tool, code=code, message=message)
            return await self._broken(tool, exchange, clock.elapsed)
        except TimeoutError:
            if not clock.expired:
                return await self._broken(tool, exchange, clock.elapsed)
            return self._timed_out(tool, exchange, clock)
        except Exception as error:  # boundary: the SDK raises what it likes for an odd answer
            if exchange.result is None:
                return calls.garbled(server, tool, reason(error))
        if exchange.result is None:
            return calls.garbled(server, tool, "it was empty")
        read = functools.partial(
            tool_result, exchange.result, server=server, tool=tool, output_schema=output_schema
        )
        return await asyncio.to_thread(read) if heavy(exchange.result) else read()

    async def _converse(
        self, tool: str, arguments: dict[str, Any], exchange: Exchange, clock: CallClock
    ) -> None:
        """Send a call and answer what it asks back, until it is complete."""
        ask = functools.partial(self._ask, tool, arguments)
        if self.reception is None:
            await ask(exchange)
        else:
            subject = Subject(name=tool, arguments=arguments)
            await self.reception.converse(ask, exchange, subject, clock.paused)

    async def _ask(self, tool: str, arguments: dict[str, Any], exchange: Exchange) -> None:
        from mcp_types import CallToolRequest, CallToolRequestParams

        direct = self._direct()
        if direct is None:
            params = CallToolRequestParams(name=tool, arguments=arguments)
            await self.send(CallToolRequest(params=params), exchange)
            return
        with exchange.current():
            await direct.call({"name": tool, "arguments": arguments}, exchange)

    async def send(self, request: ClientRequest, exchange: Exchange) -> None:
        """Send one request and wait; ``exchange`` holds the raw answer then.

        Raises:
            mcp.MCPError: the server refused, or the connection closed.
        """
        from mcp_types import Result

        with exchange.current():  # the result is read from there, raw
            await self._client.session.send_request(request, Result)

    def _timed_out(self, tool: str, exchange: Exchange, clock: CallClock) -> ToolResult:
        if self._stalled():
            what = f"The server {self._spec.name} stopped reading what kage sends"
            fix = f"Restart it: /mcp restart {self._spec.name} in the chat"
            self._fail(Fault(stage=Stage.CALL, what=what, fix=fix))
        return calls.timed_out(
            self._spec.name,
            tool,
            limit=clock.limit,
            elapsed=clock.elapsed,
            hard=clock.hit_hard,
            sent=exchange.written is not Written.NO,
        )

    async def _broken(self, tool: str, exchange: Exchange, elapsed: float) -> ToolResult:
        fault = await self._death(_DEATH_WAIT)
        return calls.broke_off(
            self._spec.name,
            tool,
            fault=fault,
            elapsed=elapsed,
            sent=exchange.written is not Written.NO,
        )
