"""Read the ``[permissions]`` tables; what cannot be read is closed, never open.

A rule with a mistake may have been meant to refuse something, so its tool is refused altogether
until the mistake is mended; the fault says where it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from kage.config import keys
from kage.config.schema import PermissionSpec, ToolRules, Wish
from kage.config.tables import Table
from kage.config.values import Wrong, spell

ALL = ("*",)


def read_permissions(table: Table) -> PermissionSpec:
    """Read the tables of the person's own file."""
    found = table.read(keys.PERMISSIONS)
    mode = found.get("mode", "default")
    servers: dict[str, Wish] = {}
    if (child := table.child("mcp")) is not None:
        servers = _wishes(child)
    tools = _tools(table)
    if not table.sound and mode == "default":
        mode = "ask"
        table.report.note(
            f"{table.document.file}: [permissions] has mistakes, so every call asks "
            "until they are mended"
        )
    return PermissionSpec(mode=mode, servers=servers, tools=tools)


def read_project_permissions(table: Table) -> tuple[ToolRules, ...]:
    """Read what a project file may say: deny and ask patterns of tools."""
    for name in ("mode", "mcp"):
        if name in table.data:
            table.fault(
                "is not allowed in a project file",
                key=name,
                expected="deny and ask patterns under permissions.tools",
            )
    rest = {name: value for name, value in table.data.items() if name not in {"mode", "mcp"}}
    inner = Table(table.document, rest, table.report, table.path)
    inner.read(keys.PERMISSIONS)
    rules: list[ToolRules] = []
    for rule in _tools(inner):
        written = table.data["tools"][rule.tool]
        data = written if isinstance(written, dict) else {}
        entry = Table(table.document, data, table.report, (*table.path, "tools", rule.tool))
        for name in ("allow", "default"):
            if name in entry.data:
                entry.fault(
                    "is not allowed in a project file", key=name, expected="deny or ask patterns"
                )
        rules.append(dataclasses.replace(rule, allow=(), default=None))
    return tuple(rules)


def with_project(spec: PermissionSpec, rules: tuple[ToolRules, ...]) -> PermissionSpec:
    """Add a project's deny and ask patterns, which can only make the rules stricter."""
    return dataclasses.replace(spec, tools=(*spec.tools, *rules)) if rules else spec


def _wishes(table: Table) -> dict[str, Wish]:
    wishes: dict[str, Wish] = {}
    for server, value in table.data.items():
        try:
            wishes[server] = keys.WISH(value)
        except Wrong as wrong:
            table.fault(wrong.what, key=server, expected=wrong.expected, got=spell(value))
            wishes[server] = "deny"
    return wishes


def _tools(table: Table) -> tuple[ToolRules, ...]:
    child = table.child("tools")
    if child is None:
        return ()
    rules: list[ToolRules] = []
    for tool in child.data:
        entry = child.table(tool)
        if entry is None:
            rules.append(
                ToolRules(tool=tool, deny=ALL, place=child.document.place((*child.path, tool)))
            )
        else:
            rules.append(_rule(entry, tool))
    return tuple(rules)


def _rule(entry: Table, tool: str) -> ToolRules:
    found: dict[str, Any] = entry.read(keys.TOOL_RULES)
    if not tool.strip():
        entry.fault("is no name of a tool")
    if not entry.sound and not _only_allow_is_wrong(entry, found):
        found["deny"] = ALL
        entry.report.note(
            f"{entry.place}: the rules for {tool} have a mistake, so its calls are refused "
            "until it is mended"
        )
    return ToolRules(tool=tool, place=entry.place, **found)


def _only_allow_is_wrong(entry: Table, found: Mapping[str, Any]) -> bool:
    known = {key.name for key in keys.TOOL_RULES}
    return set(entry.data) <= known and set(entry.data) - set(found) == {"allow"}
