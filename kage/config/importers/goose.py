"""Goose: ``extensions`` in YAML, of which some are servers."""

from __future__ import annotations

from kage.config.documents import Document
from kage.config.importers.entry import Bad, Entry
from kage.config.importers.foreign import Format, entries, uses
from kage.config.importers.shapes import mapped
from kage.config.importers.variables import Words, dollars

_KINDS = ("stdio", "sse", "streamable_http")


def _server(entry: Entry) -> None:
    kind = entry.pop("type")
    if kind not in _KINDS:
        raise Bad(f"it is {'no server' if kind is None else f'a {kind} extension'} of goose itself")
    entry.text("command", "cmd")
    entry.texts("args", "args")
    entry.pairs("env", "envs")
    entry.texts("env_pass", "env_keys")
    env: dict[str, object] = {
        key: entry.table.pop(key) for key in ("args", "env", "env_pass") if key in entry.table
    }
    entry.text("url", "uri")
    entry.where()
    if "command" in entry.table:
        entry.table |= env
    elif "env_pass" in env:
        entry.note("env_keys is left out: no process is started")
    if kind == "sse":
        entry.table["transport"] = "sse"
    entry.switch()
    entry.seconds("timeout", into=("tool_timeout",))
    entry.texts("enabled_tools", "available_tools")
    entry.drop("name", "display_name", "description", "bundled")


def _fits(document: Document) -> int:
    return 8 * bool(uses(entries(document.data, "extensions"), "type"))


FORMAT = Format(
    name="goose",
    title="goose",
    read=mapped(("extensions",), _server, lambda: Words(translate=dollars)),
    fits=_fits,
    home=(".config/goose/config.yaml",),
)
