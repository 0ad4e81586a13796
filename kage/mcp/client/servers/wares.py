"""The tools of one server: what they call, what is offered now, what the registry takes next.

Changes hands only in :meth:`Wares.take`, which the manager calls at a boundary.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable

from kage.config.schema import ServerSpec
from kage.mcp.client.calling.adapter import ServerToolAdapter, adapt
from kage.mcp.client.connections.connection import Connection
from kage.mcp.client.servers.judging import Judged
from kage.mcp.client.servers.line import Line
from kage.mcp.client.servers.rest import Rest

Tools = tuple[ServerToolAdapter, ...]
_PER_TOKEN = 4  # characters, roughly


class Wares:
    """What one server offers to the registry.

    Args:
        rest: Is told of every use.
        servers: Every configured name.
        wake: Gives a connection for a line nobody carries; raises StartFailed.
        changed: Called when the next boundary has something to take.
    """

    def __init__(
        self,
        *,
        rest: Rest,
        servers: Callable[[], Iterable[str]],
        wake: Callable[[Line], Awaitable[Connection]],
        changed: Callable[[], None],
    ) -> None:
        self.tools: Tools = ()
        self.withheld: Tools = ()  # what a person has to look at first
        self.judged = Judged()  # what the tools are made of
        self.line: Line | None = None  # what the tools call
        self._rest = rest
        self._servers = servers
        self._wake = wake
        self._changed = changed
        self._carriers: dict[str, Connection] = {}  # by the id of the line they carry
        self._pending: Tools | None = None
        self._registered = False  # the registry holds tools of it
        self._tokens = -1

    @property
    def tokens(self) -> int:
        """What its definitions cost a model, roughly, in tokens."""
        if self._tokens < 0:
            letters = 0
            for tool in self.tools:
                spec = tool.spec
                letters += len(spec.name) + len(spec.description) + len(json.dumps(spec.schema))
            self._tokens = -(-letters // _PER_TOKEN)
        return self._tokens

    def offer(self, spec: ServerSpec, id: str, *, entry: str, judged: Judged) -> None:
        """Offer what may be offered from the next boundary on, under the line ``id``."""
        self.judged = judged
        line = Line(
            id,
            server=spec.name,
            entry=entry,
            listing=judged.listing,
            using=self._rest.using,
            wake=self._carrier,
        )
        self._put(self._sorted(spec, line), line)

    def carry(self, spec: ServerSpec, connection: Connection) -> bool:
        """Let ``connection`` carry its line, and offer its list; whether that is another one."""
        self._carriers[connection.id] = connection
        entry, judged = connection.recipe.entry, connection.judged
        line = self.line
        same = line is not None and (line.id, line.entry) == (connection.id, entry)
        if line is not None and same and self.judged == judged:
            line.listing = judged.listing  # the very object, so that nobody has to compare again
            return False
        self.offer(spec, connection.id, entry=entry, judged=judged)
        return True

    def drop(self, connection: Connection) -> None:
        """Nothing goes over ``connection`` any more."""
        if self._carriers.get(connection.id) is connection:
            del self._carriers[connection.id]

    def refilter(self, spec: ServerSpec) -> None:
        """Offer what other settings make of the same list."""
        if self.line is not None:
            tools = self._sorted(spec, self.line)
            if [tool.spec for tool in tools] != [tool.spec for tool in self.tools]:
                self._put(tools, self.line)

    def withdraw(self) -> None:
        """Offer nothing from the next boundary on."""
        self.withheld, self.judged = (), Judged()
        self._put((), None)

    def take(self) -> Tools | None:
        """Give the tools that replace what is registered, once; None: nothing changed."""
        pending, self._pending = self._pending, None
        if pending is not None:
            self._registered = bool(pending)
        return pending

    def _put(self, tools: Tools, line: Line | None) -> None:
        self.tools, self.line = tools, line
        self._tokens = -1
        self._pending = tools if tools or self._registered else None
        if self._pending is not None:
            self._changed()

    def _sorted(self, spec: ServerSpec, line: Line) -> Tools:
        """Make the tools of a list, and put those aside that are held."""
        every = adapt(spec, line.listing, line, entry=line.entry, servers=self._servers())
        held = self.judged.verdict.held
        self.withheld = tuple(tool for tool in every if tool.original in held)
        return tuple(tool for tool in every if tool.original not in held)

    async def _carrier(self, line: Line) -> Connection:
        return self._carriers.get(line.id) or await self._wake(line)
