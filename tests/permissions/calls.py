"""Calls to judge: built-ins and a server's tools, as the rest of kage describes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kage.config.schema import PermissionSpec, ToolRules
from kage.core.gate import CallRequest
from kage.core.tools import Risk, ServerTool, Subject, SubjectKind, ToolSpec
from kage.permissions.rules.rules import Rules

PATH_TOOLS = {
    "read": Risk.READ,
    "ls": Risk.READ,
    "find": Risk.READ,
    "grep": Risk.READ,
    "write": Risk.WRITE,
    "edit": Risk.WRITE,
}


def builtin(name: str) -> ToolSpec:
    """Describe one of kage's own tools."""
    if name == "bash":
        risk, subject = Risk.EXEC, Subject(kind=SubjectKind.COMMAND, argument="command")
    elif name == "web_fetch":
        risk, subject = Risk.NETWORK, Subject(kind=SubjectKind.URL, argument="url")
    else:
        risk = PATH_TOOLS[name]
        subject = Subject(kind=SubjectKind.PATH, argument="path", default=".")
    return ToolSpec(name=name, description="", schema={}, risk=risk, subject=subject)


def mcp(
    server: str = "filesystem",
    original: str = "read_file",
    *,
    exposed: str = "",
    origin: str = "user",
    pin: str = "pin-1",
    entry_hash: str = "entry-1",
    connection: str = "c1",
) -> ToolSpec:
    """Describe a server's tool."""
    return ToolSpec(
        name=exposed or f"{server}__{original}",
        description="",
        schema={},
        risk=Risk.EXEC,
        server=ServerTool(
            server=server,
            origin=origin,
            original=original,
            entry_hash=entry_hash,
            pin=pin,
            connection=connection,
        ),
    )


def call(
    tool: ToolSpec | str,
    arguments: Mapping[str, Any] | None = None,
    *,
    workspace: Path,
    by_hand: bool = False,
    again: bool = False,
) -> CallRequest:
    """Make a call of ``tool``."""
    return CallRequest(
        call_id="call-1",
        tool=builtin(tool) if isinstance(tool, str) else tool,
        arguments=arguments or {},
        workspace=workspace,
        by_hand=by_hand,
        again=again,
    )


def rules(
    *tables: ToolRules,
    allow: tuple[str, ...] = (),
    servers: Mapping[str, Any] | None = None,
    mode: Any = "default",
    known: tuple[str, ...] = ("filesystem", "github"),
) -> Rules:
    """Make the rules of some tables; ``servers`` are the wishes of ``[permissions.mcp]``."""
    spec = PermissionSpec(mode=mode, servers=servers or {}, tools=tables)
    return Rules.from_settings(spec, allow=allow, servers=known)
