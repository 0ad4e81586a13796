"""kage's own tables: ``[mcp.servers.<name>]``, or ``mcpServers`` with kage's keys."""

from __future__ import annotations

from kage.config import server_keys
from kage.config.documents import Document
from kage.config.importers.entry import Bad, Entry
from kage.config.importers.foreign import Collection, Format, Surroundings, entries, table
from kage.config.importers.shapes import read_map
from kage.config.importers.variables import Words, same

_READ = ("command", "args", "cwd", "env", "url", "headers")
_KNOWN = {key.name for key in server_keys.SERVER} | {"type"}
_MARKS = {name for name in _KNOWN if "_" in name} | {"required", "start", "protocol", "pin"}


def server(entry: Entry) -> None:
    """Read an entry with kage's own keys."""
    kept = {}
    for key in sorted(_KNOWN - set(_READ)):
        value = entry.pop(key)
        if value is not None:
            kept[key] = value
    if not entry.has("command") and not entry.has("url"):
        raise Bad("it has neither command nor url")
    entry.program()
    entry.text("url", "url")
    entry.pairs("headers", "headers")
    kind = kept.get("transport", kept.get("type"))
    if isinstance(kind, str) and server_keys.TRANSPORTS.get(kind) in {"stdio", "http"}:
        kept.pop("transport", None)
        kept.pop("type", None)
    elif "type" in kept and "transport" not in kept:
        kept["transport"] = kept.pop("type")
    entry.table |= kept


def _read(document: Document, around: Surroundings) -> Collection:
    path = ("mcpServers",) if "mcpServers" in document.data else ("mcp", "servers")
    servers = read_map(document, path, server, lambda: Words(translate=same))
    return Collection(servers=servers)


def _fits(document: Document) -> int:
    if not document.json and table(document.data, "mcp", "servers") is not None:
        return 7
    return 6 * any(
        _MARKS & set(one) or ("type" in one and isinstance(one.get("timeout"), str))
        for one in entries(document.data, "mcpServers")
    )


FORMAT = Format(name="kage", title="kage", read=_read, fits=_fits)
