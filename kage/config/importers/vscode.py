"""VS Code: ``servers`` and ``inputs``, in a file of their own or inside its settings."""

from __future__ import annotations

from kage.config.documents import Document
from kage.config.importers.claude import plain
from kage.config.importers.entry import Entry
from kage.config.importers.foreign import Collection, Format, Surroundings, table
from kage.config.importers.shapes import read_map
from kage.config.importers.variables import Words, editor


def _server(entry: Entry) -> None:
    entry.leave("envFile", "kage reads no such file; set its variables before kage starts")
    entry.drop("gallery", "version")
    plain(entry)


def _read(document: Document, around: Surroundings) -> Collection:
    path: tuple[str, ...] = ("servers",) if "servers" in document.data else ("mcp", "servers")
    held = table(document.data, *path[:-1])
    inputs = _inputs((held or {}).get("inputs"))
    servers = read_map(document, path, _server, lambda: Words(translate=editor, inputs=inputs))
    return Collection(servers=servers)


def _inputs(found: object) -> dict[str, str]:
    return {
        str(one["id"]): str(one.get("description", ""))
        for one in (found if isinstance(found, list) else [])
        if isinstance(one, dict) and "id" in one
    }


def _fits(document: Document) -> int:
    data = document.data
    if table(data, "servers") is not None:
        return 6
    inner = table(data, "mcp", "servers")
    return 5 if inner is not None and "inputs" in data["mcp"] else 0


FORMAT = Format(
    name="vscode",
    title="VS Code",
    read=_read,
    fits=_fits,
    home=(
        ".config/Code/User/mcp.json",
        "Library/Application Support/Code/User/mcp.json",
        ".config/Code/User/settings.json",
        "Library/Application Support/Code/User/settings.json",
    ),
    project=(".vscode/mcp.json",),
)
