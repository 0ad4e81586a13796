"""Read the description a model sees of a built-in tool from the text beside its module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


def description(tool: str) -> str:
    """Give the text of ``<tool>.md``."""
    return (_FOLDER / f"{tool}.md").read_text(encoding="utf-8").strip()


def schema(required: tuple[str, ...], **properties: Mapping[str, Any]) -> dict[str, Any]:
    """Make the JSON Schema of flat arguments; Any, since a schema is JSON."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def words(text: str, *, default: str | None = None) -> dict[str, Any]:
    """Describe a text argument."""
    return {
        "type": "string",
        "description": text,
        **({} if default is None else {"default": default}),
    }


def yes_no(text: str) -> dict[str, Any]:
    """Describe a yes-or-no argument, no by default."""
    return {"type": "boolean", "description": text, "default": False}


def count(
    text: str, *, low: int, high: int | None = None, default: int | None = None
) -> dict[str, Any]:
    """Describe a whole-number argument."""
    described: dict[str, Any] = {"type": "integer", "description": text, "minimum": low}
    if high is not None:
        described["maximum"] = high
    if default is not None:
        described["default"] = default
    return described


def choice(text: str, options: tuple[str, ...]) -> dict[str, Any]:
    """Describe an argument that is one of ``options``, the first by default."""
    return {"type": "string", "description": text, "enum": list(options), "default": options[0]}
