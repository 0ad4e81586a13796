"""What all servers offer beside their tools, by the name of the server."""

from __future__ import annotations

from collections.abc import Mapping

from kage.core.content import Content
from kage.core.events import Noticed, Publish
from kage.core.levels import Level
from kage.core.offers import CompletionWish, FilledPrompt, Offers, Provenance
from kage.mcp.client.offers.entries import short
from kage.mcp.client.servers.fleet import Fleet


class Offering:
    """Reaches the prompts, resources and templates of every server."""

    def __init__(self, fleet: Fleet, publish: Publish) -> None:
        self._fleet = fleet
        self._publish = publish

    def names(self) -> tuple[str, ...]:
        """Give the name of every server, in the order of the configuration."""
        return tuple(server.spec.name for server in self._fleet.all())

    def offered(self) -> tuple[Offers, ...]:
        """Give the prompts, resources and templates of every server that has some, typed."""
        found = (server.beside.offers() for server in self._fleet.all())
        return tuple(held for held in found if held.prompts or held.resources or held.templates)

    async def listed(self, name: str) -> Offers:
        """Wait for the lists of one server, as long as it takes at most, and give them.

        Raises:
            UsageError: there is no such server.
        """
        return await self._fleet.get(name).beside.listed()

    def provenance(self, name: str) -> Provenance:
        """Say which connection of which entry of a server would answer.

        Raises:
            UsageError: there is no such server.
        """
        return self._fleet.get(name).beside.provenance()

    async def read_resource(self, name: str, uri: str) -> tuple[Content, ...]:
        """Read a resource; a server that sleeps is started.

        Raises:
            UsageError: there is no such server.
            ServerError: it is not up, or the resource could not be had.
        """
        return await self._fleet.get(name).beside.read(uri)

    async def get_prompt(
        self, name: str, prompt: str, arguments: Mapping[str, str]
    ) -> FilledPrompt:
        """Have a prompt filled in; a server that sleeps is started.

        Raises:
            UsageError: there is no such server.
            ServerError: it is not up, or the prompt could not be had.
        """
        return await self._fleet.get(name).beside.prompt(prompt, arguments)

    async def complete(self, wish: CompletionWish) -> tuple[str, ...]:
        """Ask a server that is up for values of an argument.

        Raises:
            UsageError: there is no such server.
            ServerError: it refused, or did not answer.
        """
        return await self._fleet.get(wish.server).beside.complete(wish)

    def watch(self, name: str, uri: str) -> None:
        """Publish a notice when this resource changes, once, where the server can tell.

        Raises:
            UsageError: there is no such server.
        """
        self._fleet.get(name).beside.watch(uri)

    def unwatch_all(self) -> None:
        """Watch nothing any more."""
        for server in self._fleet.all():
            for uri in server.beside.watched:
                server.beside.unwatch(uri)

    def changed(self, name: str, uri: str) -> None:
        """Tell that a watched resource of a server changed."""
        what = f"{name}:{short(uri)} changed since you attached it"
        fix = f"Mention it again to send what it says now: @{name}:{short(uri)}"
        self._publish(Noticed(level=Level.INFO, what=what, fix=fix))
