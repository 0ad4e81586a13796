"""Where prompts and resources come from, as the engine sees it; and the place that has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kage.core.content import Content
from kage.core.errors import UsageError
from kage.core.offers import CompletionWish, FilledPrompt, Offers, Provenance


class OfferSource(Protocol):
    """What the engine needs of ``mcp.client.manager.Manager`` beside tools."""

    def names(self) -> tuple[str, ...]:
        """Give the names of all servers."""
        ...

    def offered(self) -> tuple[Offers, ...]:
        """Give what connected servers offer."""
        ...

    def provenance(self, name: str) -> Provenance:
        """Say which connection of which entry would answer.

        Raises:
            UsageError: there is no such server.
        """
        ...

    async def read_resource(self, name: str, uri: str) -> tuple[Content, ...]:
        """Read a resource.

        Raises:
            KageError: says what did not work.
        """
        ...

    async def get_prompt(
        self, name: str, prompt: str, arguments: Mapping[str, str]
    ) -> FilledPrompt:
        """Have a prompt filled in.

        Raises:
            KageError: says what did not work.
        """
        ...

    async def complete(self, wish: CompletionWish) -> tuple[str, ...]:
        """Ask for values of an argument.

        Raises:
            KageError: says what did not work.
        """
        ...

    def watch(self, name: str, uri: str) -> None:
        """Tell when this resource changes, where the server can."""
        ...

    def unwatch_all(self) -> None:
        """Watch nothing any more."""
        ...


class NoOffers:
    """The source of a kage without servers."""

    def names(self) -> tuple[str, ...]:
        """Give no name."""
        return ()

    def offered(self) -> tuple[Offers, ...]:
        """Offer nothing."""
        return ()

    def provenance(self, name: str) -> Provenance:
        """Raise UsageError: there is no server."""
        raise UsageError(f"There is no server {name!r}")

    async def read_resource(self, name: str, uri: str) -> tuple[Content, ...]:
        """Raise UsageError: there is no server."""
        raise UsageError(f"There is no server {name!r}")

    async def get_prompt(
        self, name: str, prompt: str, arguments: Mapping[str, str]
    ) -> FilledPrompt:
        """Raise UsageError: there is no server."""
        raise UsageError(f"There is no server {name!r}")

    async def complete(self, wish: CompletionWish) -> tuple[str, ...]:
        """Know no value."""
        return ()

    def watch(self, name: str, uri: str) -> None:
        """Watch nothing."""

    def unwatch_all(self) -> None:
        """Watch nothing."""
