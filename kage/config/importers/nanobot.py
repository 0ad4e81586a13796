"""nanobot: a map of servers under ``mcp.servers``, or under ``tools.mcpServers``."""

from __future__ import annotations

from kage.config.documents import Document
from kage.config.importers.entry import Entry
from kage.config.importers.foreign import Collection, Format, Surroundings, table
from kage.config.importers.shapes import read_map
from kage.config.importers.variables import Words, same

_PLACES = (("mcp", "servers"), ("tools", "mcpServers"))


def _server(entry: Entry) -> None:
    entry.where()
    entry.switch()
    entry.seconds("toolTimeout", into=("tool_timeout",))
    entry.texts("enabled_tools", "enabledTools")


def _read(document: Document, around: Surroundings) -> Collection:
    found = [
        one
        for path in _PLACES
        for one in read_map(document, path, _server, lambda: Words(translate=same))
    ]
    return Collection(servers=tuple(found))


def _fits(document: Document) -> int:
    return 4 * (document.json and any(table(document.data, *path) for path in _PLACES))


FORMAT = Format(
    name="nanobot",
    title="nanobot",
    read=_read,
    fits=_fits,
    home=(".nanobot/config.json",),
)
