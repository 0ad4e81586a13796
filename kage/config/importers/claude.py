"""Claude Desktop and Claude Code: ``mcpServers``, the latter also per project folder."""

from __future__ import annotations

from kage.config.documents import Document
from kage.config.importers.entry import Bad, Entry
from kage.config.importers.foreign import Collection, Format, Surroundings, entries, table, uses
from kage.config.importers.shapes import mapped, read_map
from kage.config.importers.variables import Words, literal, same


def plain(entry: Entry) -> None:
    """Read the entry most hosts agree on."""
    if not any(entry.has(key) for key in ("command", "url", "serverUrl")):
        raise Bad("it has neither command nor url")
    entry.where("url", "serverUrl")
    entry.switch()
    entry.drop("description", "name")


def _code(entry: Entry) -> None:
    plain(entry)
    entry.seconds("timeout", into=("tool_timeout",), unit=0.001)
    entry.leave("headersHelper", "kage runs no program for headers here")
    entry.leave("oauth", "kage signs in by itself: kage mcp login")
    entry.leave("alwaysAllow", "what may run is decided in kage alone")


def _read_code(document: Document, around: Surroundings) -> Collection:
    words = lambda: Words(translate=same)  # noqa: E731
    found = list(read_map(document, ("mcpServers",), _code, words))
    notes: list[str] = []
    for folder in table(document.data, "projects") or {}:
        servers = table(document.data, "projects", folder, "mcpServers")
        if not servers:
            continue
        if folder == str(around.workspace):
            known = {one.name for one in found}
            own = read_map(document, ("projects", folder, "mcpServers"), _code, words)
            found += [one for one in own if one.name not in known]
            notes += [
                f"{one.name}: stands twice, the one for everywhere is taken"
                for one in own
                if one.name in known
            ]
        else:
            notes.append(f"{len(servers)} more belong to {folder}: run the import there")
    return Collection(servers=tuple(found), notes=tuple(notes))


def _fits_code(document: Document) -> int:
    if "mcpServers" in document.data and "projects" in document.data:
        return 9
    found = list(entries(document.data, "mcpServers"))
    return 2 + 2 * bool(uses(found, "type", "headersHelper")) if found else 0


DESKTOP = Format(
    name="claude-desktop",
    title="Claude Desktop",
    read=mapped(("mcpServers",), plain, lambda: Words(translate=literal)),
    fits=lambda document: 3 * bool(table(document.data, "mcpServers")),
    home=(
        ".config/Claude/claude_desktop_config.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
    ),
)
CODE = Format(
    name="claude-code",
    title="Claude Code",
    read=_read_code,
    fits=_fits_code,
    home=(".claude.json",),
    project=(".mcp.json",),
)
