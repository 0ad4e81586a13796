"""Codex: ``[mcp_servers.<name>]`` in TOML."""

from __future__ import annotations

import re

from kage.config.importers.entry import Bad, Entry
from kage.config.importers.foreign import Format, table
from kage.config.importers.shapes import mapped
from kage.config.importers.variables import Words, literal

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _server(entry: Entry) -> None:
    entry.pairs("headers", "http_headers")
    extra = entry.table.pop("headers", {})
    extra |= _from_variables(entry)
    entry.where()
    if extra and "url" in entry.table:
        entry.table["headers"] = entry.table.get("headers", {}) | extra
    elif extra:
        entry.note("headers are left out: the server is a process")
    entry.texts("env_pass", "env_vars")
    if "url" in entry.table and entry.table.pop("env_pass", None) is not None:
        entry.note("env_vars is left out: no process is started")
    entry.switch()
    entry.flag("required", "required")
    entry.seconds("startup_timeout_sec", into=("timeout",))
    entry.seconds("startup_timeout_ms", into=("timeout",), unit=0.001)
    entry.seconds("tool_timeout_sec", into=("tool_timeout",))
    entry.texts("enabled_tools", "enabled_tools")
    entry.texts("disabled_tools", "disabled_tools")
    entry.leave("scopes", "kage signs in by itself: kage mcp login")
    entry.leave("default_tools_approval_mode", "what may run is decided in kage alone")
    entry.leave("tools", "what may run is decided in kage alone")


def _from_variables(entry: Entry) -> dict[str, str]:
    """Give the headers whose values stand in variables."""
    found: dict[str, str] = {}
    token = entry.pop("bearer_token_env_var")
    named = entry.pop("env_http_headers") or {}
    if not isinstance(named, dict):
        raise Bad("env_http_headers is no table")
    for name, variable in named.items():
        found[name] = f"${{{_variable(variable, f'env_http_headers.{name}')}}}"
    if token is not None:
        found["Authorization"] = f"Bearer ${{{_variable(token, 'bearer_token_env_var')}}}"
    return found


def _variable(value: object, key: str) -> str:
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
        raise Bad(f"{key} is no name of an environment variable")
    return value


FORMAT = Format(
    name="codex",
    title="Codex",
    read=mapped(("mcp_servers",), _server, lambda: Words(translate=literal)),
    fits=lambda document: 9 * (table(document.data, "mcp_servers") is not None),
    home=(".codex/config.toml",),
    project=(".codex/config.toml",),
)
