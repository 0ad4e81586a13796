"""OpenCode: ``mcp``, whose entries have their program and arguments in one list."""

from __future__ import annotations

from kage.config.documents import Document
from kage.config.importers.entry import Bad, Entry
from kage.config.importers.foreign import Format, entries
from kage.config.importers.shapes import mapped
from kage.config.importers.variables import Words, braces


def _server(entry: Entry) -> None:
    argv = entry.pop("command")
    if argv is not None:
        if not isinstance(argv, list) or not argv:
            raise Bad("command is no list with a program in it")
        entry.give(command=argv[0], args=argv[1:])
    entry.pairs("env", "environment")
    env = entry.table.pop("env", None)
    _reached(entry)
    if env and "command" in entry.table:
        entry.table["env"] = env
    elif env:
        entry.note("environment is left out: no process is started")
    entry.switch()
    entry.seconds("timeout", into=("timeout",), unit=0.001)
    if entry.pop("oauth") is not None:
        entry.note("oauth is left out: kage signs in by itself: kage mcp login")


def _reached(entry: Entry) -> None:
    kind = entry.pop("type")
    wanted = {"local": "command", "remote": "url"}.get(str(kind)) if kind is not None else None
    if kind is not None and wanted is None:
        raise Bad("its type is neither local nor remote")
    entry.where()
    if wanted is not None and wanted not in entry.table:
        raise Bad(f"its type is {kind}, but it has no {wanted}")


def _fits(document: Document) -> int:
    found = list(entries(document.data, "mcp"))
    return 7 * any(one.get("type") in ("local", "remote") for one in found)  # it may be a list


FORMAT = Format(
    name="opencode",
    title="OpenCode",
    read=mapped(("mcp",), _server, lambda: Words(translate=braces)),
    fits=_fits,
    home=(".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"),
    project=("opencode.json", "opencode.jsonc"),
)
