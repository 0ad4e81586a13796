"""What a tool call's row says: its name, the argument worth reading, its result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kage.core.messages import ToolCall
from kage.core.tools import ToolSpec
from kage.mcp.names import SEPARATOR
from kage.tui.text import shown

DETAIL = 160
_TELLING = ("path", "command", "url", "pattern", "query", "name", "file_path", "uri", "q")


def label(call: ToolCall, spec: ToolSpec | None) -> str:
    """Name a call's tool: ``server · tool`` for a server's, else the name."""
    if spec is not None and spec.server is not None:
        return f"{shown(spec.server.server, 32)} · {shown(spec.server.original, 60)}"
    server, separator, tool = call.name.partition(SEPARATOR)
    if separator and server and tool:  # from an older session: the server may be gone
        return f"{shown(server, 32)} · {shown(tool, 60)}"
    return shown(call.name, 60)


def detail(call: ToolCall, spec: ToolSpec | None) -> str:
    """Give the argument a person would read first, then the others, on one line."""
    if call.broken is not None:
        return f"arguments are no JSON object: {shown(call.broken, 80)}"
    first = spec.subject.argument if spec is not None else ""
    telling = first if first in call.arguments else _first(call.arguments)
    words = []
    if telling:
        words.append(_value(call.arguments[telling], 100))
    words += [
        f"{shown(str(key), 30)}={_value(value, 40)}"
        for key, value in call.arguments.items()
        if key != telling
    ][:6]
    return shown("  ".join(word for word in words if word), DETAIL)


def _first(arguments: Mapping[str, Any]) -> str:
    return next((name for name in _TELLING if isinstance(arguments.get(name), str)), "")


def _value(value: object, limit: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return shown(text, limit)
