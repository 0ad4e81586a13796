"""What of a tool's definition counts, and the digest that stands for it: its pin.

What has no order in a schema (the names in ``required``, the values of an ``enum``) is sorted
first, so that a server that lists the same things in another order has the same pin.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from kage.core.canonical import MAX_DEPTH, NotCanonical, canonical, rewritten

PARTS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
INSTRUCTIONS = ""  # the name a server's instructions go by among its definitions

_NESTED = frozenset((dict, list))
_SCHEMAS = ("inputSchema", "outputSchema")
_SETS = ("required", "enum", "type", "anyOf", "oneOf", "allOf")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_DATA = ("default", "const", "examples")  # values, not schemas: their order means something


def written(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Give what counts of an entry of ``tools/list``, as the server wrote it."""
    return {part: entry[part] for part in PARTS if entry.get(part) is not None}


def canonical_form(definition: Mapping[str, Any]) -> bytes:
    """Give the bytes a pin is the digest of.

    Raises:
        NotCanonical: for what JSON cannot carry, and nesting that is too deep.
    """
    return canonical(_settled(definition))


def pin_again(definition: Mapping[str, Any]) -> str:
    """Give the pin of what had one when it was written down; quicker.

    Raises:
        ValueError: it never had one.
    """
    return hashlib.sha256(rewritten(_settled(definition))).hexdigest()


def _settled(definition: Mapping[str, Any]) -> dict[str, Any]:
    return {
        part: unordered(value, 0) if part in _SCHEMAS else value
        for part, value in definition.items()
    }


def said(instructions: str) -> dict[str, Any]:
    """Give a server's instructions in the form of a definition."""
    return {"instructions": instructions}


def unordered(schema: Any, depth: int) -> Any:  # any JSON: servers write what they like
    """Give a schema in which what has no order is sorted.

    Raises:
        NotCanonical: it is nested too deep, or holds what JSON cannot carry.
    """
    if isinstance(schema, dict):
        if _NESTED.isdisjoint(map(type, schema.values())):
            return schema
        if depth > MAX_DEPTH:
            raise NotCanonical(f"arguments is nested deeper than {MAX_DEPTH}")
        return {
            key: _part(key, value, depth + 1) if isinstance(value, dict | list) else value
            for key, value in schema.items()
        }
    if isinstance(schema, list):
        if depth > MAX_DEPTH:
            raise NotCanonical(f"arguments is nested deeper than {MAX_DEPTH}")
        return [unordered(item, depth + 1) for item in schema]
    return schema


def _part(key: str, value: Any, depth: int) -> Any:  # an object or a list
    if key in _DATA:
        return value
    if isinstance(value, dict):
        if key in _NAMED:
            return {name: unordered(item, depth + 1) for name, item in value.items()}
        if key == "dependentRequired":
            return {name: in_order(item) for name, item in value.items()}
    elif key in _SETS:
        items = value if key == "enum" else [unordered(item, depth + 1) for item in value]
        return in_order(items)
    return unordered(value, depth)


def in_order(items: Any) -> Any:  # any JSON
    """Sort a list whose order means nothing; anything else stays as it is.

    Raises:
        NotCanonical: it holds what JSON cannot carry.
    """
    if not isinstance(items, list):
        return items
    if all(isinstance(item, str) for item in items):
        return sorted(items)
    return sorted(items, key=canonical)
