"""Gemini CLI: ``mcpServers``, where ``url`` means SSE and ``httpUrl`` means HTTP."""

from __future__ import annotations

from kage.config.documents import Document
from kage.config.importers.entry import Bad, Entry
from kage.config.importers.foreign import (
    Collection,
    Format,
    Surroundings,
    entries,
    table,
    uses,
)
from kage.config.importers.shapes import read_map
from kage.config.importers.variables import Words, dollars


def _server(entry: Entry) -> None:
    if entry.has("tcp"):
        raise Bad("it is reached by a WebSocket, which kage does not speak")
    old = entry.has("url") and not entry.has("httpUrl") and not entry.has("type")
    if entry.has("httpUrl") and entry.has("url"):
        entry.leave("url", "httpUrl stands there too and comes first")
    entry.where("httpUrl", "url")
    if old and "url" in entry.table:
        entry.table["transport"] = "sse"
    entry.switch()
    entry.seconds("timeout", into=("tool_timeout",), unit=0.001)
    entry.texts("enabled_tools", "includeTools")
    entry.texts("disabled_tools", "excludeTools")
    if entry.pop("trust"):
        entry.note("trust is left out: kage asks before every call, whatever the other host did")
    entry.leave("oauth", "kage signs in by itself: kage mcp login")
    entry.leave("authProviderType", "kage signs in by itself: kage mcp login")
    entry.drop("description", "extensionName")


def _read(document: Document, around: Surroundings) -> Collection:
    servers = read_map(document, ("mcpServers",), _server, lambda: Words(translate=dollars))
    beside = table(document.data, "mcp") or {}
    notes = tuple(
        f"mcp.{key} is left out: set disabled on the servers it means"
        for key in ("allowed", "excluded")
        if key in beside
    )
    return Collection(servers=servers, notes=notes)


def _fits(document: Document) -> int:
    found = list(entries(document.data, "mcpServers"))
    return 6 * bool(uses(found, "httpUrl", "trust", "includeTools", "excludeTools", "tcp"))


FORMAT = Format(
    name="gemini",
    title="Gemini CLI",
    read=_read,
    fits=_fits,
    home=(".gemini/settings.json",),
    project=(".gemini/settings.json",),
)
