"""Lango: ``mcpServers`` with durations as text and a safety level."""

from __future__ import annotations

from kage.config.documents import Document
from kage.config.importers.entry import Entry
from kage.config.importers.foreign import Format, entries, uses
from kage.config.importers.shapes import mapped
from kage.config.importers.variables import Words, same


def _server(entry: Entry) -> None:
    entry.where()
    entry.switch()
    entry.text("safety_level", "safetyLevel", "safety")
    entry.seconds("timeout", into=("timeout", "tool_timeout"))


def _fits(document: Document) -> int:
    found = list(entries(document.data, "mcpServers"))
    timed = any(isinstance(one.get("timeout"), str) for one in found)
    return 5 * bool(uses(found, "safetyLevel", "safety") or timed)


FORMAT = Format(
    name="lango",
    title="Lango",
    read=mapped(("mcpServers",), _server, lambda: Words(translate=same)),
    fits=_fits,
    home=(".lango/mcp.json",),
    project=(".lango-mcp.json",),
)
