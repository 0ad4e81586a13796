"""Check a call's arguments against the part of JSON Schema that kage's own tools use.

A schema is turned into functions once; what they find wrong is told in words a model can act on.
``jsonschema`` knows all of JSON Schema, but costs more to import than serving takes to start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

Problems = list[str]
Validator = Callable[[Any, str, Problems], None]  # Any: a JSON value

_MOST = 20  # problems told at once
_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("text", lambda value: isinstance(value, str)),
    "integer": (
        "a whole number",
        lambda value: (
            (isinstance(value, int) and not isinstance(value, bool))
            or (isinstance(value, float) and value.is_integer())
        ),
    ),
    "number": (
        "a number",
        lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    ),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "array": ("a list", lambda value: isinstance(value, list)),
    "object": ("an object", lambda value: isinstance(value, dict)),
    "null": ("null", lambda value: value is None),
}
_KNOWN = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "enum", "const"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minLength", "maxLength", "items", "minItems", "maxItems"),
        *("title", "description", "default", "examples", "$schema"),  # nothing to check
    }
)


def compile_schema(schema: Mapping[str, Any]) -> Validator:
    """Turn ``schema`` into a validator.

    Raises:
        ValueError: it uses a keyword kage does not check, so it would be accepted unread.
    """
    unknown = set(schema) - _KNOWN
    if unknown:
        raise ValueError(f"the schema keyword {min(unknown)} is not supported")
    checks = [*_type(schema), *_range(schema), *_size(schema), *_choice(schema)]
    if isinstance(schema.get("items"), Mapping):
        checks.append(_items(compile_schema(schema["items"])))
    if "properties" in schema or "required" in schema or "additionalProperties" in schema:
        checks.append(_properties(schema))

    def validate(value: Any, path: str, problems: Problems) -> None:
        before = len(problems)
        for check in checks:
            check(value, path, problems)
            if len(problems) > before:  # of one value the first problem is enough
                return

    return validate


def problems_of(validator: Validator, arguments: Mapping[str, Any]) -> Problems:
    """Give what is wrong with ``arguments``, in words; empty when nothing is."""
    problems: Problems = []
    validator(arguments, "", problems)
    return problems if len(problems) <= _MOST else [*problems[:_MOST], "and more"]


def spelled(value: Any) -> str:
    """Name the kind of a JSON value, and the value itself when it is short."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'the text "{value}"' if len(value) <= 40 else "a text"
        case float() if not math.isfinite(value):
            return "a number that is not finite"
        case int() | float():
            shown = repr(value) if isinstance(value, float) or abs(value) < 1 << 64 else ""
            return shown if shown else "a very large number"
        case list():
            return "a list"
        case _:
            return "an object"


def _type(schema: Mapping[str, Any]) -> list[Validator]:
    given = schema.get("type")
    names = [given] if isinstance(given, str) else list(given or ())
    if not names:
        return [_sound_text]
    words = " or ".join(_TYPES[name][0] for name in names)
    tests = tuple(_TYPES[name][1] for name in names)

    def check(value: Any, path: str, problems: Problems) -> None:
        for test in tests:
            if test(value):
                return
        problems.append(f"{path or 'arguments'} must be {words}, not {spelled(value)}")

    return [check, _sound_text] if "string" in names else [check]


def _sound_text(value: Any, path: str, problems: Problems) -> None:
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            problems.append(f"{path} holds half a surrogate pair, which is no character")


def _range(schema: Mapping[str, Any]) -> list[Validator]:
    bounds: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
        ("minimum", "at least", lambda value, bound: value >= bound),
        ("maximum", "at most", lambda value, bound: value <= bound),
        ("exclusiveMinimum", "more than", lambda value, bound: value > bound),
        ("exclusiveMaximum", "less than", lambda value, bound: value < bound),
    )

    def make(bound: Any, words: str, holds: Callable[[Any, Any], bool]) -> Validator:
        def check(value: Any, path: str, problems: Problems) -> None:
            if (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and not holds(value, bound)
            ):
                problems.append(f"{path} must be {words} {bound}, not {spelled(value)}")

        return check

    return [make(schema[key], words, holds) for key, words, holds in bounds if key in schema]


def _size(schema: Mapping[str, Any]) -> list[Validator]:
    limits: tuple[tuple[str, type[str] | type[list[Any]], str, int], ...] = (
        ("minLength", str, "characters", -1),
        ("maxLength", str, "characters", 1),
        ("minItems", list, "entries", -1),
        ("maxItems", list, "entries", 1),
    )

    def make(bound: int, kind: type[str] | type[list[Any]], unit: str, sign: int) -> Validator:
        words = "at least" if sign < 0 else "at most"

        def check(value: Any, path: str, problems: Problems) -> None:
            if isinstance(value, kind) and (len(value) - bound) * sign > 0:
                problems.append(f"{path} must have {words} {bound} {unit}, not {len(value)}")

        return check

    return [
        make(schema[key], kind, unit, sign) for key, kind, unit, sign in limits if key in schema
    ]


def _choice(schema: Mapping[str, Any]) -> list[Validator]:
    if "const" in schema:
        options: tuple[Any, ...] = (schema["const"],)
    elif "enum" in schema:
        options = tuple(schema["enum"])
    else:
        return []
    words = ", ".join(
        f'"{option}"' if isinstance(option, str) else spelled(option) for option in options
    )

    def check(value: Any, path: str, problems: Problems) -> None:
        if not any(type(value) is type(option) and value == option for option in options):
            problems.append(f"{path} must be one of {words}, not {spelled(value)}")

    return [check]


def _items(inner: Validator) -> Validator:
    def check(value: Any, path: str, problems: Problems) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                inner(item, f"{path}[{index}]", problems)
                if len(problems) > _MOST:
                    return

    return check


def _properties(schema: Mapping[str, Any]) -> Validator:
    known = {name: compile_schema(part) for name, part in schema.get("properties", {}).items()}
    required = tuple(schema.get("required", ()))
    others = schema.get("additionalProperties", True)
    other = compile_schema(others) if isinstance(others, Mapping) else None

    def check(value: Any, path: str, problems: Problems) -> None:
        if not isinstance(value, dict):
            return
        for name in required:
            if name not in value:
                problems.append(f"{path}{'.' if path else ''}{name} is missing")
        for name, item in value.items():
            inner = known.get(name, other)
            if inner is not None:
                inner(item, f"{path}.{name}" if path else name, problems)
            elif others is False:
                problems.append(_unknown(name, known))
            if len(problems) > _MOST:
                return

    return check


def _unknown(name: str, known: Mapping[str, Validator]) -> str:
    shown = name if len(name) <= 60 else f"{name[:59]}…"
    return f'there is no argument "{shown}" (known: {", ".join(known) or "none"})'
