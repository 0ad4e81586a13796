"""What the tools of one offered list call: the connection that carries them, woken when needed.

Decisions are bound to the line's id, which every connection it is carried by has as well; so a
call can be approved before there is a process, and the tap of the process started for it lets
exactly that call through (docs/decisions/0008).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from kage.core.content import Content
from kage.core.errors import ServerError
from kage.core.tools import ToolResult
from kage.mcp.client.calling import calls
from kage.mcp.client.calling.definitions import Definition, Listing
from kage.mcp.client.connections.connection import Connection
from kage.mcp.client.faults import StartFailed, to_error
from kage.mcp.client.wire.exchange import Progress


class Line:
    """One offered list of tools, and the way to whoever serves it.

    Args:
        id: What decisions are bound to.
        entry: The entry hash the list was offered under.
        using: Keeps the server awake for the time of a block.
        wake: Gives the connection that carries this line, starting it; raises StartFailed.
    """

    def __init__(
        self,
        id: str,
        *,
        server: str,
        entry: str,
        listing: Listing,
        using: Callable[[], AbstractContextManager[None]],
        wake: Callable[[Line], Awaitable[Connection]],
    ) -> None:
        self.id = id
        self.server = server
        self.entry = entry
        self.listing = listing
        self._using = using
        self._wake = wake

    async def call_tool(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        progress: Progress,
        output_schema: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        """Call a tool of this list, as it was offered; every failure is a result."""
        with self._using():
            try:
                connection = await self._wake(self)
            except StartFailed as error:
                return calls.not_up(self.server, tool, error.fault)
            if why := self._differs(connection, tool):
                return calls.changed(self.server, tool, why)
            return await connection.call_tool(
                tool, arguments, progress=progress, output_schema=output_schema
            )

    async def read_resource(self, uri: str) -> tuple[Content, ...]:
        """Read a resource of whoever carries this list.

        Raises:
            ServerError: the server is gone, or the resource could not be had.
        """
        with self._using():
            try:
                connection = await self._wake(self)
            except StartFailed as error:
                raise to_error(self.server, error.fault) from None
            lists = connection.offer_lists
            if lists is None:
                raise ServerError(f"{self.server} is gone", server=self.server, stage="call")
            return await lists.take.read(uri)

    def _differs(self, connection: Connection, tool: str) -> str:
        """Say what is not as it was when the call was approved, "" when nothing is."""
        if connection.id != self.id or connection.recipe.entry != self.entry:
            return "the server was replaced since the call was approved"
        if connection.listing is self.listing:
            return ""
        fresh = _find(connection.listing, tool)
        if fresh is None:
            return "the server does not offer it any more"
        known = _find(self.listing, tool)
        if known is None or fresh.pin != known.pin:
            return "its definition changed since it was approved"
        return ""


def _find(listing: Listing, tool: str) -> Definition | None:
    return next((one for one in listing.tools if one.name == tool), None)
