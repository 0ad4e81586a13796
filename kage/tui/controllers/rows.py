"""What a tool call's row says: its name, the argument worth reading, its result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kage.core.content import as_text
from kage.core.messages import Outcome, ToolCall, ToolMessage
from kage.core.tools import ToolSpec
from kage.mcp.names import SEPARATOR
from kage.tui.text import shown

if TYPE_CHECKING:
    from kage.core.undo import Effect

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


def result(message: ToolMessage, *, unknown: str) -> dict[str, Any]:
    """Give the fields of a finished call's row; ``unknown`` opens what can be done about it."""
    lost = message.outcome is Outcome.UNKNOWN
    effect = message.effect
    return {
        "state": message.outcome.value,
        "seconds": message.seconds,
        "summary": message.summary,
        "body": as_text(message.content),
        "fix": f"{unknown}: check, retry or leave it" if lost else "",
        "diff": message.diff,
        "effect": effect_words(effect) if effect is not None else "",
        "alarm": effect is not None and effect.claim_broken,
        "came": message.warnings,
    }


def effect_words(effect: Effect) -> str:
    """Say what a call did to files, "" where its row says so already."""
    words = []
    if effect.total and not _says_itself(effect):
        names = ", ".join(shown(file.path, 40) for file in effect.files[:3])
        more = f" and {effect.total - 3} more" if effect.total > 3 else ""
        head = f"changed {effect.total} file{'s' * (effect.total != 1)}"
        if effect.claim_broken:
            head = f"claims read-only, but {head}"
        words.append(f"{head}: {names}{more}" if names else head)
    if effect.beside:
        words.append(f"while {effect.beside + 1} calls ran, so it may be of another")
    if effect.note:
        words.append(shown(effect.note, 120))
    elif effect.total and not effect.record:
        words.append("cannot be undone")
    return "; ".join(words)


def _says_itself(effect: Effect) -> bool:
    """Say whether this is one file of a file tool, whose row names it."""
    return effect.total == 1 and effect.own


def _first(arguments: Mapping[str, Any]) -> str:
    return next((name for name in _TELLING if isinstance(arguments.get(name), str)), "")


def _value(value: object, limit: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return shown(text, limit)
