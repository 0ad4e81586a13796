"""Which part of an offered list the person knows: asked of the pins before anything is offered."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from kage.config.schema import ServerSpec
from kage.core.canonical import digest
from kage.core.definitions import INSTRUCTIONS, said
from kage.core.pins import HeldChange, Offered, PinnedDefinition, Pins, Verdict
from kage.mcp.client.calling.definitions import Definition, Listing, wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A list, and what of it may not be offered."""

    listing: Listing = field(default_factory=Listing)
    verdict: Verdict = field(default_factory=Verdict)

    def against(self, tool: Definition) -> HeldChange | None:
        """Give why a tool of the list is held, None when it is not."""
        return self.verdict.held.get(tool.name)


async def judge(pins: Pins | None, spec: ServerSpec, listing: Listing, instructions: str) -> Judged:
    """Compare a list, and what the server wants the model to know, with what is known."""
    if pins is None:
        return Judged(listing=listing)
    offered = offered_by(spec, listing, instructions)
    return Judged(listing=listing, verdict=await asyncio.to_thread(pins.review, offered))


def offered_by(spec: ServerSpec, listing: Listing, instructions: str) -> Offered:
    """Give a list in the form pins compare."""
    definitions = [
        PinnedDefinition(name=tool.name, digest=tool.pin, written=tool.written)
        for tool in listing.tools
    ]
    names = {tool.name for tool in wanted(listing.tools, spec)}
    if spec.instructions:
        words = said(instructions)
        one = PinnedDefinition(name=INSTRUCTIONS, digest=digest(words), written=words)
        definitions.append(one)
        names.add(INSTRUCTIONS)
    return Offered(
        server=spec.name,
        origin=spec.origin,
        mode=spec.pin,
        definitions=tuple(definitions),
        wanted=frozenset(names),
    )
