"""What one connection offers beside tools: its lists, kept as the server has them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from kage.core.offers import Offers
from kage.mcp.client.offers import entries
from kage.mcp.client.offers.taking import Taking
from kage.mcp.client.wire.wash import TooDeep, heavy, wash

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp_types import ServerCapabilities

    from kage.config.schema import ServerSpec
    from kage.mcp.client.calling.talk import ListRequest, Talk

KINDS = ("prompts", "resources", "templates")
MAX_OFFERS = 10_000  # prompts, resources or templates
_PATIENCE = 1.0  # seconds a start waits for lists nothing depends on; they go on behind it
_LIMIT = 30.0  # seconds for one list behind the start
_DEBOUNCE = 0.25  # seconds after a change notice until the list is fetched
_MAX_GAP = 5.0  # seconds the gap grows to while notices keep coming
_NO_METHOD = -32601
_MUCH = 200  # entries; more belong into a thread
_CHANGED = {
    "notifications/prompts/list_changed": ("prompts",),
    "notifications/resources/list_changed": ("resources", "templates"),
}


class Lister(Protocol):
    """Fetches lists; ``Talk`` is one."""

    async def pages(self, kind: ListRequest, key: str, most: int) -> tuple[list[object], str]:
        """Fetch all pages of a list; the text says what was left out."""
        ...


class OfferLists:
    """One connection's prompts, resources and templates.

    Args:
        lister: Fetches lists.
        has: What the server says it can.
        take: Makes the requests a person wants made.
        server: Its name.
        redact: Takes secrets out of every entry.
    """

    def __init__(
        self,
        lister: Lister,
        has: ServerCapabilities,
        take: Taking,
        *,
        server: str,
        redact: Callable[[str], str],
    ) -> None:
        self.take = take
        self.updated: Callable[[str], None] = _nobody  # told the address of a changed resource
        self._lister = lister
        self._has = has
        self._server = server
        self._redact = redact
        self._one_list = asyncio.Lock()
        self._listed: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
        self._notes: dict[str, str] = {}
        self._typed: Offers | None = None
        self._stale: set[str] = set()
        self._dirty = asyncio.Event()

    @property
    def raw(self) -> dict[str, object]:
        """Capabilities and lists as the server says them, made safe to hand on."""
        told = self._has.model_dump(by_alias=True, exclude_none=True)
        plain = {} if heavy(told) else next(self._plain([told]), {})
        return {"capabilities": plain, **self._listed}

    def offers(self) -> Offers:
        """Give what is listed, entry by entry made sure of."""
        if self._typed is None:
            self._typed = entries.read(
                self._server,
                self._listed,
                completes=self.take.completes,
                watches=self.take.watches,
                notes=tuple(self._notes.values()),
            )
        return self._typed

    def told(self, method: str, uri: object) -> None:
        """Take note of a notification; nothing is done about it here and now."""
        if method == "notifications/resources/updated":
            if isinstance(uri, str):
                self.updated(uri)
            return
        self._stale.update(_CHANGED.get(method, ()))
        self._dirty.set()

    async def begin(self) -> None:
        """Fetch all lists; those that take longer than a moment are left to :meth:`tend`."""
        self._stale.update(KINDS)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self.refresh()
        if self._stale:
            self._dirty.set()

    async def tend(self, changed: Callable[[], None]) -> None:
        """Fetch lists again after changes, until cancelled: one at a time, the last state kept."""
        gap = 0.0
        while True:
            await self._dirty.wait()
            await asyncio.sleep(gap)
            self._dirty.clear()
            if await self.refresh():
                changed()
            gap = min(max(gap, _DEBOUNCE) * 2, _MAX_GAP) if self._dirty.is_set() else _DEBOUNCE

    async def refresh(self) -> bool:
        """Fetch the lists that are stale; whether anything differs. One that fails stays."""
        differs = False
        async with self._one_list:
            for kind in KINDS:
                if kind in self._stale:
                    self._stale.discard(kind)
                    try:
                        differs = await self._fetch(kind) or differs
                    except asyncio.CancelledError:
                        self._stale.add(kind)
                        raise
        return differs

    async def _fetch(self, kind: str) -> bool:
        from mcp import MCPError

        if (self._has.prompts if kind == "prompts" else self._has.resources) is None:
            return False
        request, key = _request(kind)
        try:
            async with asyncio.timeout(_LIMIT):
                found, note = await self._lister.pages(request, key, MAX_OFFERS)
        except MCPError as error:
            if error.code == _NO_METHOD:  # many can resources and know no templates
                return False
            return self._missed(kind, str(error))
        except TimeoutError:
            return self._missed(kind, f"it did not come within {_LIMIT:g} s")
        except (ValueError, entries.Misread) as error:
            return self._missed(kind, str(error))
        note = f"{kind}: {note}" if note else ""
        if len(found) > _MUCH or heavy(found):
            return await asyncio.to_thread(self._keep, kind, found, note)
        return self._keep(kind, found, note)

    def _missed(self, kind: str, why: str) -> bool:
        """Keep the list there is, and say that it is not what the server has."""
        note = f"{kind}: the list could not be fetched: {entries.short(self._redact(why))}"
        differs = note != self._notes.get(kind, "")
        self._notes[kind] = note
        self._typed = None
        return differs

    def _keep(self, kind: str, found: list[object], note: str) -> bool:
        listed = list(self._plain(found))
        differs = (listed, note) != (self._listed[kind], self._notes.get(kind, ""))
        if differs:
            self._listed = {**self._listed, kind: listed}
            self._notes[kind] = note
            self._typed = None
            self.offers()  # typed here, where time does not matter
        return differs

    def _plain(self, found: Iterable[object]) -> Iterator[dict[str, Any]]:
        for entry in found:
            if isinstance(entry, Mapping):
                with contextlib.suppress(TooDeep):
                    yield wash(entry, self._redact)


def offer_lists(
    client: Client,
    talk: Talk,
    spec: ServerSpec,
    *,
    redact: Callable[[str], str],
    gone: Callable[[], Awaitable[str]],
) -> OfferLists:
    """Make the lists of one connection; ``gone`` says why it ended, waiting a moment for it."""
    take = Taking(client, talk.send, server=spec.name, limit=spec.tool_timeout, gone=gone)
    return OfferLists(talk, client.server_capabilities, take, server=spec.name, redact=redact)


def changes(client: Client | None) -> tuple[bool, bool, bool]:
    """Say whether the server tells when its tools, prompts and resources change."""
    has = client.server_capabilities if client is not None else None
    held = (has.tools, has.prompts, has.resources) if has is not None else (None, None, None)
    tools, prompts, resources = (one is not None and one.list_changed is True for one in held)
    return tools, prompts, resources


async def follow_changes(client: Client) -> None:
    """Subscribe to the changes a modern server tells of, and stay until that ends.

    Raises:
        mcp.MCPError: it refused, or the connection closed.
        RuntimeError: the subscription broke off.
    """
    tools, prompts, resources = changes(client)
    async with client.listen(
        tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
    ) as events:
        async for _ in events:
            pass  # the tap has told already


def _request(kind: str) -> tuple[ListRequest, str]:
    from mcp_types import ListPromptsRequest, ListResourcesRequest, ListResourceTemplatesRequest

    if kind == "prompts":
        return ListPromptsRequest, "prompts"
    if kind == "resources":
        return ListResourcesRequest, "resources"
    return ListResourceTemplatesRequest, "resourceTemplates"


def _nobody(uri: str) -> None:
    pass
