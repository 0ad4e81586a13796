"""Read what a project brings: servers to be trusted one by one, and stricter permissions.

Nothing here may grant anything: a cloned project is a stranger's.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kage.config.documents import Unreadable, read_document
from kage.config.layers import Entry, Layer
from kage.config.permissions import read_project_permissions, with_project
from kage.config.providers import key_variables
from kage.config.schema import Settings
from kage.config.servers import read_server
from kage.config.tables import Report, Table
from kage.core.errors import ConfigFault

PROJECT_CONFIG = Path(".kage") / "config.toml"
PROJECT_JSON = Path(".mcp.json")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)")


def costs_a_server(fault: ConfigFault, workspace: Path) -> bool:
    """Say whether a mistake costs no more than servers of the project: no rule can be lost by it.

    A stranger's file then stops nobody from using kage in its folder.
    """
    if fault.file == workspace / PROJECT_JSON:
        return True
    return fault.file == workspace / PROJECT_CONFIG and fault.key.startswith("mcp.servers.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The settings with the project's rules in them, its servers, and the files it came from."""

    settings: Settings
    files: tuple[Path, ...]
    entries: tuple[Entry, ...]


def read_project(
    workspace: Path,
    settings: Settings,
    defaults: dict[str, Any],  # values of ServerSpec's fields
    report: Report,
    *,
    known: Collection[str],
) -> Project:
    """Read the project's two files, where they exist and are not ``known`` as the person's own."""
    files: list[Path] = []
    entries: list[Entry] = []
    for name in (PROJECT_JSON, PROJECT_CONFIG):
        file = workspace / name
        if os.path.realpath(file) in known:
            continue
        try:
            document = read_document(file, named=False)
        except Unreadable as error:
            report.add(error.fault)
            continue
        if document is None:
            continue
        files.append(file)
        top = Table(document, document.data, report, foreign=document.json)
        entries += _entries(top, workspace, settings, defaults)
        if not document.json:
            settings = _with_permissions(top, settings)
    return Project(settings=settings, files=tuple(files), entries=tuple(entries))


def _entries(
    top: Table, workspace: Path, settings: Settings, defaults: dict[str, Any]
) -> Iterator[Entry]:
    table = top.child("mcpServers") if top.document.json else _toml_servers(top)
    secret = key_variables(settings.providers)
    for name in table.data if table is not None else ():
        entry = table.table(name) if table is not None else None
        if entry is None:
            continue
        spec = read_server(entry, name, origin=os.path.realpath(workspace), defaults=defaults)
        if spec is None:
            continue
        taken = secret & set(_variables(entry.data))
        if taken:
            entry.fault(f"uses {min(taken)}: a project may not have provider keys")
            continue
        yield Entry(spec=spec, layer=Layer.PROJECT, table=entry)


def _toml_servers(top: Table) -> Table | None:
    for name in top.data:
        if name not in {"mcp", "permissions"}:
            top.fault(
                "is not allowed in a project file",
                key=name,
                expected="mcp.servers, and deny and ask under permissions.tools",
            )
    mcp = top.child("mcp")
    if mcp is None:
        return None
    for name in mcp.data:
        if name != "servers":
            mcp.fault("is not allowed in a project file", key=name, expected="mcp.servers")
    return mcp.child("servers")


def _with_permissions(top: Table, settings: Settings) -> Settings:
    table = top.child("permissions")
    if table is None:
        return settings
    rules = read_project_permissions(table)
    return dataclasses.replace(settings, permissions=with_project(settings.permissions, rules))


def _variables(value: object) -> Iterator[str]:
    """Yield the variables named anywhere in an entry, in keys kage does not know as well."""
    match value:
        case str():
            yield from _VARIABLE.findall(value)
        case Mapping():
            for item in value.values():
                yield from _variables(item)
        case list():
            for item in value:
                yield from _variables(item)
