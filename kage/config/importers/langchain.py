"""LangChain MCP adapters: ``mcpServers`` with options for all of them beside it."""

from __future__ import annotations

from typing import Any

from kage.config.documents import Document
from kage.config.importers.entry import Bad, Entry, restart
from kage.config.importers.foreign import Collection, Format, Surroundings, entries, uses
from kage.config.importers.shapes import read_map
from kage.config.importers.variables import Words, literal

_KINDS = ("text", "image", "audio", "resource")
_OPTIONS = (
    "throwOnLoadError",
    "onConnectionError",
    "prefixToolNameWithServerName",
    "additionalToolNamePrefix",
    "useStandardContentBlocks",
    "outputHandling",
    "defaultToolTimeout",
)


def _read(document: Document, around: Surroundings) -> Collection:
    data = document.data
    shared: dict[str, Any] = {
        key: data[key] for key in ("outputHandling", "defaultToolTimeout") if key in data
    }

    def server(entry: Entry) -> None:
        _server(entry, shared)

    servers = read_map(document, ("mcpServers",), server, lambda: Words(translate=literal))
    return Collection(servers=servers, notes=tuple(_notes(data)))


def _server(entry: Entry, shared: dict[str, Any]) -> None:
    entry.where()
    entry.switch()
    entry.flag("sse_fallback", "automaticSSEFallback", default=True)
    restart(entry, "restart", "reconnect")
    own = entry.pop("outputHandling")
    handling = _output(shared.get("outputHandling"), entry) | _output(own, entry)
    if handling:
        entry.table["output"] = handling
    if not entry.has("defaultToolTimeout") and "defaultToolTimeout" in shared:
        inner = Entry("", shared, 0, Words(translate=literal))
        inner.seconds("defaultToolTimeout", into=("tool_timeout",), unit=0.001)
        entry.table |= inner.table
    entry.seconds("defaultToolTimeout", into=("tool_timeout",), unit=0.001)
    entry.text("stderr", "stderr")
    if entry.table.get("stderr") in {"pipe", "ignore", "overlapped"}:
        entry.table["stderr"] = "null" if entry.table["stderr"] == "ignore" else "log"
    entry.leave("authProvider", "kage signs in by itself: kage mcp login")


def _output(value: object, entry: Entry) -> dict[str, str]:
    words = {"content": "model", "artifact": "artifact"}
    if value is None:
        return {}
    if isinstance(value, str) and value in words:
        return dict.fromkeys(_KINDS, words[value])
    if not isinstance(value, dict):
        raise Bad("outputHandling is neither content nor artifact nor a table")
    found = {}
    for kind, where in value.items():
        if kind not in _KINDS or not isinstance(where, str) or where not in words:
            entry.note(f"outputHandling.{kind} is left out: kage has no word for it")
        else:
            found[kind] = words[where]
    return found


def _notes(data: dict[str, Any]) -> list[str]:
    notes = []
    if data.get("throwOnLoadError") or data.get("onConnectionError") == "throw":
        notes.append("a server that fails stops nothing in kage: --require-mcp makes all required")
    if data.get("prefixToolNameWithServerName") is False:
        notes.append("tool names keep their server in front: prefixToolNameWithServerName is left")
    if data.get("additionalToolNamePrefix"):
        notes.append("additionalToolNamePrefix is left out: kage reads mcp__<server>__<tool>, too")
    if "useStandardContentBlocks" in data:
        notes.append("useStandardContentBlocks is left out: kage keeps every kind of content")
    return notes


def _fits(document: Document) -> int:
    found = list(entries(document.data, "mcpServers"))
    own = uses(found, "automaticSSEFallback", "restart", "reconnect", "outputHandling")
    return 7 * bool(found and (own or uses([document.data], *_OPTIONS)))


FORMAT = Format(name="langchain", title="LangChain", read=_read, fits=_fits)
