"""Which link leads to which server."""

from __future__ import annotations

from kage.mcp.client.servers.journal import Journal
from kage.mcp.client.servers.recipe import Recipe
from kage.mcp.client.services import Services
from kage.mcp.client.transport.base import Link
from kage.mcp.client.transport.http import HttpLink
from kage.mcp.client.transport.launch import Launch
from kage.mcp.client.transport.process import ProcessLink


def make_link(recipe: Recipe, services: Services, journal: Journal, *, sse: bool = False) -> Link:
    """Make the link ``recipe`` describes; ``sse``: by the older HTTP transport."""
    if isinstance(recipe.target, Launch):
        return ProcessLink(recipe, services.spawner, journal)
    return HttpLink(recipe, services, old=sse)
