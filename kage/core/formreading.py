"""Read a form from the JSON Schema of a server, which may be anything.

What cannot be shown as a field is edited as JSON; what is too large for any person is refused
whole. References are not followed and patterns are not run.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from kage.core.forms import Choice, Field, Form, Kind, spelt
from kage.core.sanitise import clip, visible

MAX_FIELDS = 100
MAX_CHOICES = 500  # of one field
MAX_LETTERS = 100_000  # of the whole schema, as JSON
_MAX_NAME = 200
_MAX_PROSE = 2_000
_SECRETIVE = re.compile(
    r"(?i)passw|passphrase|passcode|secret|token|credential|api.?key|private.?key|access.?key"
    r"|(?<![a-z])(pin|otp|cvv|cvc|ssn|pwd|key)(?![a-z])|one.?time.?code|card.?number|seed.?phrase"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SAFE_INTEGER = 10**18


class BadForm(ValueError):
    """The schema is no form a person could fill in; the text says why."""


def read_form(schema: object) -> Form:
    """Read a form from the JSON Schema of an object.

    Raises:
        BadForm: it is no object schema, or larger than a person could fill in.
    """
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise BadForm("it is not the schema of an object")
    if _letters(schema, MAX_LETTERS) >= MAX_LETTERS:
        raise BadForm(f"it is longer than {MAX_LETTERS:,} characters")
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        raise BadForm("its properties are no object")
    if len(properties) > MAX_FIELDS:
        raise BadForm(f"it has {len(properties):,} fields, and the limit is {MAX_FIELDS}")
    needed = {name for name in _list(schema.get("required")) if isinstance(name, str)}
    fields: list[Field] = []
    notes: list[str] = []
    for name, inner in properties.items():
        if not isinstance(name, str) or len(name) > _MAX_NAME:
            raise BadForm("one of its fields has a name nobody could read")
        field, note = _field(name, inner, required=name in needed)
        fields.append(field)
        notes += [note] if note else []
    unknown = needed - {field.name for field in fields}
    if unknown:
        raise BadForm(f"it requires {visible(clip(min(unknown), 60))}, which is no field of it")
    return Form(fields=tuple(fields), notes=tuple(notes))


def looks_secret(*words: str) -> bool:
    """Say whether the words around a field sound like a password, a token, a key."""
    return any(_SECRETIVE.search(_CAMEL.sub(" ", word).replace("_", " ")) for word in words)


def _field(name: str, schema: object, *, required: bool) -> tuple[Field, str]:
    if not isinstance(schema, Mapping):
        schema = {}
    title = clip(_text(schema, "title"), _MAX_NAME)
    description = clip(_text(schema, "description"), _MAX_PROSE)
    secret = looks_secret(name, title, description[:300], _text(schema, "format"))
    shared: dict[str, Any] = {
        "name": name,
        "title": title,
        "description": description,
        "required": required,
        "secret": secret and schema.get("type") not in ("boolean",),
    }
    field = Field(**shared, **_kind(schema))
    default = schema.get("default")
    if default is None:
        return field, ""
    made = dataclasses.replace(field, default=default)
    if made.complaint(default):
        return field, f"the default of {visible(clip(name, 60))} does not fit it and is left out"
    return made, ""


def _kind(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Give the part of a field that its kind decides."""
    kinds = schema.get("type")
    names = [kinds] if isinstance(kinds, str) else _list(kinds)
    plain = [name for name in names if isinstance(name, str) and name != "null"]
    choices = _choices(schema)
    if choices:
        return {"kind": Kind.ONE, "choices": choices}
    match plain:
        case ["string"]:
            return {
                "kind": Kind.TEXT,
                "format": clip(_text(schema, "format"), 40),
                "shortest": _count(schema, "minLength") or 0,
                "longest": _count(schema, "maxLength"),
            }
        case ["number" | "integer" as name]:
            return {
                "kind": Kind(name),
                "minimum": _bound(schema, "minimum"),
                "maximum": _bound(schema, "maximum"),
                "above": _bound(schema, "exclusiveMinimum"),
                "below": _bound(schema, "exclusiveMaximum"),
            }
        case ["boolean"]:
            return {"kind": Kind.FLAG}
        case ["array"]:
            items = schema.get("items")
            several = _choices(items) if isinstance(items, Mapping) else ()
            if several:
                return {
                    "kind": Kind.MANY,
                    "choices": several,
                    "shortest": _count(schema, "minItems") or 0,
                    "longest": _count(schema, "maxItems"),
                }
    return {"kind": Kind.JSON, "shape": tuple(plain), "multiline": True}


def _choices(schema: Mapping[str, Any]) -> tuple[Choice, ...]:
    """Give the values ``enum``, ``const``, or titled constants allow; () when it is no choice."""
    values, names = _list(schema.get("enum")), _list(schema.get("enumNames"))
    if "const" in schema:
        return (_choice(schema["const"], _text(schema, "title")),)
    if values:
        titles = names if len(names) == len(values) else [""] * len(values)
        return _bounded([_choice(*pair) for pair in zip(values, titles, strict=True)])
    for key in ("oneOf", "anyOf"):
        options = _list(schema.get(key))
        if options:
            if all(isinstance(item, Mapping) and "const" in item for item in options):
                return _bounded([_choice(i["const"], i.get("title", "")) for i in options])
            return ()
    return ()


def _bounded(choices: list[Choice]) -> tuple[Choice, ...]:
    if len(choices) > MAX_CHOICES:
        raise BadForm(f"a field has {len(choices):,} choices, and the limit is {MAX_CHOICES}")
    return tuple(choices)


def _choice(value: object, title: object) -> Choice:
    words = title if isinstance(title, str) and title.strip() else spelt(value)
    return Choice(value=value, label=clip(words, _MAX_NAME))


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _text(schema: Mapping[str, Any], key: str) -> str:
    value = schema.get(key)
    return value if isinstance(value, str) else ""


def _count(schema: Mapping[str, Any], key: str) -> int | None:
    value = schema.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _SAFE_INTEGER else None


def _bound(schema: Mapping[str, Any], key: str) -> float | None:
    value = schema.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < _SAFE_INTEGER else None


def _letters(value: object, most: int) -> int:
    waiting, total = [value], 0
    while waiting and total < most:
        item = waiting.pop()
        total += 4
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, Mapping):
            total += sum(len(str(key)) + 4 for key in item)
            waiting += item.values()
        elif isinstance(item, list | tuple):
            waiting += item
    return total
