"""Take typed values out of a call's arguments, which a validator has already looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kage.core.errors import ToolError

_NAMES = {str: "text", int: "a whole number", bool: "true or false"}


def text(arguments: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """Give the text argument ``name``.

    Raises:
        ToolError: it is missing (and there is no default) or no text.
    """
    value = arguments.get(name, default)
    if not isinstance(value, str):
        raise _wrong(name, value, str)
    return value


def number(arguments: Mapping[str, Any], name: str, default: int, *, low: int, high: int) -> int:
    """Give the whole-number argument ``name``, moved into ``low`` to ``high``.

    Raises:
        ToolError: it is no whole number.
    """
    value = arguments.get(name, default)
    if isinstance(value, float) and value.is_integer():  # JSON has one kind of number
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(name, value, int)
    return min(max(value, low), high)


def flag(arguments: Mapping[str, Any], name: str, *, default: bool = False) -> bool:
    """Give the yes-or-no argument ``name``.

    Raises:
        ToolError: it is neither.
    """
    value = arguments.get(name, default)
    if not isinstance(value, bool):
        raise _wrong(name, value, bool)
    return value


def choice(arguments: Mapping[str, Any], name: str, options: tuple[str, ...]) -> str:
    """Give the argument ``name``, one of ``options``; the first is the default.

    Raises:
        ToolError: it is none of them.
    """
    value = text(arguments, name, options[0])
    if value not in options:
        raise ToolError(f"The argument {name!r} must be one of {', '.join(options)}")
    return value


def _wrong(name: str, value: object, kind: type) -> ToolError:
    if value is None:
        return ToolError(f"The argument {name!r} is missing")
    return ToolError(f"The argument {name!r} must be {_NAMES[kind]}")
