"""Write config.toml.example: every key with its default, commented out, and what it does.

Run ``python -m kage.config.example > config.toml.example``.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from kage.config import keys, server_keys, values
from kage.config.durations import spell_duration
from kage.config.key import Key
from kage.config.schema import (
    Limits,
    OAuthSpec,
    PermissionSpec,
    ProviderSpec,
    RestartSpec,
    SandboxSpec,
    ServerSpec,
    Settings,
    UndoSpec,
)

_INTRO = """\
# kage reads this file as config.toml in its configuration folder (kage config path prints where).
# Each key stands here with its default, commented out; where there is none, with an example.
# Take the "#" away from what you want to change. Durations are text ("30s", "5m") or seconds.
"""
_ONE_OF_TWO = (
    "url",
    "headers",
    "headers_command",
    "transport",
    "enabled",
    "auth",
    "sse_fallback",
)
_TABLES = frozenset({"oauth", "restart", "servers", "mcp", "tools"})


def text() -> str:
    """Give the whole file."""
    return "".join(line + "\n" for line in _lines())


def _lines() -> Iterator[str]:
    yield from _INTRO.splitlines()
    yield ""
    settings = Settings()
    yield from _keys([key for key in keys.TOP if key.check], settings)
    yield from _table("providers.local", "a model endpoint; any number of them, any name")
    yield from _keys(keys.PROVIDER, ProviderSpec(name="local", kind="openai"))
    yield from _servers(settings)
    yield from _permissions(settings.permissions)
    yield from _table("limits", "what ends a run")
    yield from _keys(keys.LIMITS, Limits())
    yield from _table("sandbox", "what the agent's shell may touch")
    yield from _keys(keys.SANDBOX, SandboxSpec())
    yield from _table("undo", "what is kept to undo calls")
    yield from _keys(keys.UNDO, UndoSpec())
    yield from _table("keys", "a key of the screen and the action it does")
    yield '#"ctrl+g" = "servers"'
    yield from _table("plugins.revive", "a plugin, by name")
    yield "#enabled = true"
    yield "#grant = []"


def _servers(settings: Settings) -> Iterator[str]:
    defaults = ServerSpec(name="example")
    yield from _table("mcp", "defaults for all servers; a server's own key beats them")
    yield f"#enabled = {_toml(settings.mcp_enabled)}  # {_doc(server_keys.MCP, 'enabled')}"
    yield from _keys([key for key in server_keys.MCP if key.name != "enabled"], defaults)
    yield from _table("mcp.servers.filesystem", "a server that kage starts, by name")
    yield from _keys([key for key in server_keys.SERVER if key.name not in _ONE_OF_TWO], defaults)
    yield from _table("mcp.servers.filesystem.restart", _doc(server_keys.SERVER, "restart"))
    yield from _keys(server_keys.RESTART, RestartSpec())
    yield from _table("mcp.servers.remote", "a server that kage connects to")
    remote = dataclasses.replace(defaults, transport="http")
    yield from _keys([key for key in server_keys.SERVER if key.name in _ONE_OF_TWO], remote)
    yield from _table("mcp.servers.remote.oauth", _doc(server_keys.SERVER, "oauth"))
    yield from _keys(server_keys.OAUTH, OAuthSpec())


def _permissions(spec: PermissionSpec) -> Iterator[str]:
    yield from _table("permissions", "what may run")
    yield from _keys(keys.PERMISSIONS, spec)
    yield from _table("permissions.mcp", 'per server: "ask" (the default), "allow" or "deny"')
    yield '#filesystem = "ask"'
    yield from _table("permissions.tools.bash", "per tool, or a glob over tools: its patterns")
    yield from _keys(keys.TOOL_RULES, None)


def _table(name: str, doc: str) -> Iterator[str]:
    yield ""
    yield f"#[{name}]  # {doc}"


def _keys(table: Sequence[Key], defaults: object) -> Iterator[str]:
    for key in table:
        if key.name in _TABLES:
            continue
        default = getattr(defaults, key.target, None)
        if not key.later and (default not in (None, "", (), {}) or not key.sample):
            shown = _toml(default, duration=key.check in (values.duration, values.long_duration))
        else:
            shown = key.sample
        later = " (no effect yet)" if key.later else ""
        yield f"#{key.name} = {shown}  # {key.doc}{later}"


def _doc(table: Sequence[Key], name: str) -> str:
    return next(key.doc for key in table if key.name == name)


def _toml(value: Any, *, duration: bool = False) -> str:  # a default of any field
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return f"{{ {', '.join(f'{key} = {_toml(item)}' for key, item in value.items())} }}"
        case float() if duration:
            return f'"{spell_duration(value)}"' if value else "0"
        case int() | float():
            return str(value)
        case tuple() | list():
            return "[" + ", ".join(_toml(item) for item in value) + "]"
        case _:
            return '"' + str(value) + '"'


if __name__ == "__main__":
    sys.stdout.write(text())
