"""Events as JSON lines, for ``kage -p --json``: one object a line, ``type`` first."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

from kage.core.events import Event

_C1 = re.compile("[\x7f-\x9f]")  # JSON need not escape them, and a terminal obeys them


def to_line(event: Event) -> str:
    """Write ``event`` as one line of JSON without the newline.

    ``type`` is the event's name in snake case; every other field stands as it is called in
    ``core.events``. Messages and parts of them carry ``kind``.
    """
    data = {"type": snake(type(event).__name__), **_fields(event)}
    text = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace").decode()
    return _C1.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def plain(value: Any) -> Any:  # any value of an event
    """Turn dataclasses, enums, paths and tuples into what JSON has."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"kind": snake(type(value).__name__), **_fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # a model writes NaN into arguments; JSON has no word for it
    return value


def snake(name: str) -> str:
    """Turn ``ToolStarted`` into ``tool_started``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _fields(value: Any) -> dict[str, Any]:  # any dataclass
    return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
