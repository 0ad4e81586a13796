"""Cursor: ``mcpServers`` with an editor's variables."""

from __future__ import annotations

from kage.config.documents import Document
from kage.config.importers.claude import plain
from kage.config.importers.entry import Entry
from kage.config.importers.foreign import Format, entries, uses
from kage.config.importers.shapes import mapped
from kage.config.importers.variables import Words, editor


def _server(entry: Entry) -> None:
    entry.leave("envFile", "kage reads no such file; set its variables before kage starts")
    entry.leave("auth", "kage signs in by itself: kage mcp login")
    entry.leave("autoApprove", "what may run is decided in kage alone")
    plain(entry)


def _fits(document: Document) -> int:
    found = list(entries(document.data, "mcpServers"))
    return 4 * bool(uses(found, "envFile", "auth") or "${env:" in str(found)) if found else 0


FORMAT = Format(
    name="cursor",
    title="Cursor",
    read=mapped(("mcpServers",), _server, lambda: Words(translate=editor)),
    fits=_fits,
    home=(".cursor/mcp.json",),
    project=(".cursor/mcp.json",),
)
