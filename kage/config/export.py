"""Servers as other hosts read them: the ``mcpServers`` shape, and VS Code's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kage.config.documents import Unreadable, read_document
from kage.config.schema import ServerSpec
from kage.core.errors import ConfigError, UsageError

TOPS = {"mcpServers": "mcpServers", "vscode": "servers", "kage": "mcp.servers"}


def written(spec: ServerSpec) -> dict[str, Any]:
    """Give the entry of ``spec`` as it stands in its file, variables unexpanded.

    Raises:
        ConfigError: the file cannot be read any more.
        UsageError: the entry stands in no file.
    """
    if spec.place is None or not spec.place.file.is_file():
        raise UsageError(f"{spec.name} stands in no file, so there is nothing to export")
    try:
        document = read_document(spec.place.file, named=True)
    except Unreadable as error:
        raise ConfigError((error.fault,)) from error
    data = document.data if document is not None else {}
    places: tuple[object, ...] = (data.get("mcpServers"), _inner(data))
    for held in places:
        if isinstance(held, dict) and isinstance(held.get(spec.name), dict):
            return dict(held[spec.name])
    raise UsageError(f"{spec.name} is not in {spec.place.file} any more")


def exported(spec: ServerSpec, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Give ``entry`` the way most hosts write it: ``type`` first, then the keys as they are."""
    rest = {key: value for key, value in entry.items() if key not in {"type", "transport"}}
    return {"type": spec.transport, **rest}


def _inner(data: Mapping[str, Any]) -> object:
    mcp = data.get("mcp")
    return mcp.get("servers") if isinstance(mcp, dict) else None
