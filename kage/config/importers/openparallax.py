"""OpenParallax: a list of servers under ``mcp.servers``, each with its name, in YAML."""

from __future__ import annotations

from kage.config.documents import Document
from kage.config.importers.entry import Bad, Entry
from kage.config.importers.foreign import Collection, Format, Surroundings
from kage.config.importers.shapes import MOST, read_one
from kage.config.importers.variables import Words, same


def _server(entry: Entry) -> None:
    if not isinstance(entry.pop("name"), str):
        raise Bad("it has no name")
    entry.where()
    entry.switch()
    idle = entry.has("idle_timeout")
    entry.seconds("idle_timeout", into=("idle_timeout",))
    if idle and "idle_timeout" in entry.table:
        entry.table["start"] = "lazy"
        entry.note("it starts at its first call, as there")


def _read(document: Document, around: Surroundings) -> Collection:
    listed = _listed(document) or []
    found = []
    for index, raw in enumerate(listed[:MOST]):
        name = raw.get("name") if isinstance(raw, dict) else None
        line = document.positions.line(("mcp", "servers", index))
        entry = Entry(str(name or f"entry {index + 1}"), raw, line, Words(translate=same))
        found.append(read_one(entry, _server))
    return Collection(servers=tuple(found))


def _listed(document: Document) -> list[object] | None:
    mcp = document.data.get("mcp")
    found = mcp.get("servers") if isinstance(mcp, dict) else None
    return found if isinstance(found, list) else None


FORMAT = Format(
    name="openparallax",
    title="OpenParallax",
    read=_read,
    fits=lambda document: 8 * (_listed(document) is not None),
    home=(".openparallax/config.yaml",),
)
