"""A JSON schema as every model endpoint accepts it: self-contained, an object, plain keywords.

Endpoints refuse a whole request for one odd schema, so the copy has no references, no
alternatives at its root, one type a schema, and only keywords all of them take.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

MAX_DEPTH = 24  # levels of the copy; deeper parts accept anything
MAX_NODES = 4_000  # schemas in one copy; recursion through references multiplies
MAX_TEXT = 1_024  # characters of a description inside a schema

_TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems")
_COMPOSED = ("anyOf", "oneOf", "allOf")

Schema = dict[str, Any]  # JSON

_NOTHING: Mapping[str, Any] = {"not": {}}


def project_schema(schema: object) -> Schema:
    """Give a self-contained copy of ``schema`` whose root is an object without alternatives."""
    work = _Work(schema)
    root = work.copy(schema, (), 0)
    root = _flat_root(root)
    properties = root.get("properties")
    root["type"] = "object"
    root["properties"] = properties if isinstance(properties, dict) else {}
    for node in nodes(root):
        drop_unknown_required(node)
    return root


class _Work:
    """Copies one schema: follows references inside it, drops what endpoints refuse."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._nodes = 0

    def copy(self, node: object, trail: tuple[str, ...], depth: int) -> Schema:
        self._nodes += 1
        if not isinstance(node, Mapping) or depth > MAX_DEPTH or self._nodes > MAX_NODES:
            return {}  # true, garbage, or too much: accepts anything
        if node == _NOTHING:  # how some generators write that a value may be missing
            return {"type": "null"}
        ref = node.get("$ref", node.get("$dynamicRef"))
        if isinstance(ref, str):
            return self._follow(node, ref, trail, depth)
        out: Schema = {}
        _copy_plain(node, out)
        self._copy_parts(node, out, trail, depth)
        for word in _COMPOSED:
            options = node.get(word)
            if isinstance(options, Sequence) and not isinstance(options, str) and options:
                out[word] = [self.copy(option, trail, depth + 1) for option in options[:64]]
        return _settle(out)

    def _follow(
        self, node: Mapping[str, Any], ref: str, trail: tuple[str, ...], depth: int
    ) -> Schema:
        beside = {key: value for key, value in node.items() if key not in ("$ref", "$dynamicRef")}
        if ref in trail:  # recursive: the model gets the shape once, then anything
            return self.copy({k: v for k, v in beside.items() if k == "description"}, trail, depth)
        target = _resolve(self._root, ref)
        found = self.copy(target, (*trail, ref), depth + 1)
        return {**found, **self.copy(beside, trail, depth + 1)} if beside else found

    def _copy_parts(
        self, node: Mapping[str, Any], out: Schema, trail: tuple[str, ...], depth: int
    ) -> None:
        properties = node.get("properties")
        if isinstance(properties, Mapping):
            out["properties"] = {
                str(name): self.copy(part, trail, depth + 1)
                for name, part in list(properties.items())[:512]
            }
        required = node.get("required")
        if isinstance(required, Sequence) and not isinstance(required, str):
            out["required"] = list(dict.fromkeys(r for r in required if isinstance(r, str)))
        items = node.get("items", node.get("prefixItems"))
        if isinstance(items, Sequence) and not isinstance(items, str):  # a tuple: any of its kinds
            kinds = [self.copy(item, trail, depth + 1) for item in items[:16]]
            items = None
            out["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds} if kinds else {}
        if isinstance(items, Mapping):
            out["items"] = self.copy(items, trail, depth + 1)
        extra = node.get("additionalProperties")
        if extra is False:
            out["additionalProperties"] = False
        elif isinstance(extra, Mapping):
            kind = self.copy(extra, trail, depth + 1)
            if "type" in kind or "anyOf" in kind:  # endpoints refuse one without a type
                out["additionalProperties"] = kind


def _copy_plain(node: Mapping[str, Any], out: Schema) -> None:
    """Copy keywords without schemas in them, each only where it is well-formed."""
    kinds = node.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(kinds, Sequence):
        legal = [kind for kind in dict.fromkeys(map(str, kinds)) if kind in _TYPES]
        if legal:
            out["type"] = legal[0] if len(legal) == 1 else legal
    for word in ("title", "description"):
        text = node.get(word)
        if isinstance(text, str) and text.strip():
            clean = text.encode("utf-8", "replace").decode()
            out[word] = clean if len(clean) <= MAX_TEXT else clean[: MAX_TEXT - 1] + "…"
    if "const" in node and "enum" not in node:
        values: object = [node["const"]]
    else:
        values = node.get("enum")
    if isinstance(values, Sequence) and not isinstance(values, str) and values:
        plain = [value for value in values if _plain(value)]
        if plain:
            out["enum"] = plain
    if _plain(node.get("default")) and node.get("default") is not None:
        out["default"] = node["default"]
    for word in _NUMBERS:
        value = node.get(word)
        if isinstance(value, int | float) and not isinstance(value, bool) and _plain(value):
            out[word] = value
    for word in _COUNTS:
        value = node.get(word)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            out[word] = value
    pattern = node.get("pattern")
    if isinstance(pattern, str) and _simple_pattern(pattern):
        out["pattern"] = pattern
    if isinstance(node.get("format"), str) and _plain(node["format"]):
        out["format"] = node["format"]


def _plain(value: object) -> bool:
    """Tell whether ``value`` can be written as JSON that every parser reads."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _simple_pattern(pattern: str) -> bool:
    """Tell whether every endpoint's engine reads the pattern: no look-around, no \\p classes."""
    if len(pattern) > 200 or "(?" in pattern or "\\p" in pattern.lower() or not _plain(pattern):
        return False
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _resolve(root: object, ref: str) -> object:
    """Find a reference inside ``root``; one that points elsewhere accepts anything."""
    if not ref.startswith("#"):
        return {}
    if not ref.startswith("#/"):
        return root if ref == "#" else _anchored(root, ref[1:])
    current = root
    for step in ref[2:].split("/"):
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(current, Mapping):
            current = current.get(key)
        elif isinstance(current, list) and key.isascii() and key.isdigit():
            current = current[int(key)] if len(key) < 6 and int(key) < len(current) else None
        else:
            return {}
    return current if isinstance(current, Mapping) else {}


def _anchored(root: object, name: str) -> object:
    if isinstance(root, Mapping):
        for pool in ("$defs", "definitions"):
            held = root.get(pool)
            for part in held.values() if isinstance(held, Mapping) else ():
                if isinstance(part, Mapping) and name in (
                    part.get("$anchor"),
                    part.get("$dynamicAnchor"),
                ):
                    return part
    return {}


def _settle(node: Schema) -> Schema:
    """Tidy one copied schema: nullable alternatives become their one kind, lone ones dissolve."""
    for word in ("anyOf", "oneOf"):
        options = node.get(word)
        if not options:
            continue
        useful = [option for option in options if option.get("type") != "null"]
        if len(useful) == 1:
            del node[word]
            return _settle({**useful[0], **_without_empty(node)})
        node[word] = useful or options[:1]
    if "oneOf" in node and "anyOf" not in node:
        node["anyOf"] = node.pop("oneOf")  # not every endpoint knows oneOf
    if "oneOf" in node:
        del node["oneOf"]
    if "allOf" in node:
        node = _merge(node, node.pop("allOf"))
    kinds = node.get("type")
    if isinstance(kinds, list):
        useful_kinds = [kind for kind in kinds if kind != "null"]
        node["type"] = useful_kinds[0] if len(useful_kinds) == 1 else useful_kinds or "null"
        if isinstance(node["type"], list):
            return _split_kinds(node)
    if node.get("type") == "array" and "items" not in node:
        node["items"] = {}
    if "properties" in node and "type" not in node and "anyOf" not in node:
        node["type"] = "object"
    return node


def _without_empty(node: Schema) -> Schema:
    return {key: value for key, value in node.items() if value not in ({}, [])}


def _split_kinds(node: Schema) -> Schema:
    """Write a list of types as alternatives: some endpoints take one type only."""
    kinds = node.pop("type")
    shared: Schema = {
        key: node.pop(key) for key in ("title", "description", "default") if key in node
    }
    options = [_settle({"type": kind, **_fitting(kind, node)}) for kind in kinds]
    return {**shared, "anyOf": options}


def _fitting(kind: str, node: Schema) -> Schema:
    words: dict[str, Sequence[str]] = {
        "string": ("minLength", "maxLength", "pattern", "format"),
        "array": ("items", "minItems", "maxItems"),
        "object": ("properties", "required", "additionalProperties"),
        "integer": _NUMBERS,
        "number": _NUMBERS,
    }
    return {key: node[key] for key in words.get(kind, ()) if key in node}


def _merge(node: Schema, parts: Sequence[Schema]) -> Schema:
    """Fold ``allOf`` into its parent: properties and requirements add up."""
    out = dict(node)
    for part in parts:
        for key, value in part.items():
            if key == "properties":
                out[key] = {**value, **out.get(key, {})}
            elif key == "required":
                out[key] = list(dict.fromkeys([*out.get(key, []), *value]))
            else:
                out.setdefault(key, value)
    return out


def _flat_root(root: Schema) -> Schema:
    """Dissolve alternatives at the root: their properties are all offered, common ones required."""
    options = root.pop("anyOf", None)
    for word in ("enum", "default", "items", "format", "pattern", *_NUMBERS, *_COUNTS):
        root.pop(word, None)
    if not options:
        return root
    objects = [_flat_root(dict(option)) for option in options]
    properties: Schema = dict(root.get("properties", {}))
    for option in objects:
        for name, part in option.get("properties", {}).items():
            held = properties.get(name)
            if held is None or held == part:
                properties[name] = part
            else:
                properties[name] = _either(held, part)
    shared = set.intersection(*(set(option.get("required", ())) for option in objects))
    root["properties"] = properties
    root["required"] = list(
        dict.fromkeys([*root.get("required", ()), *(n for n in properties if n in shared)])
    )
    note = _alternatives(objects)
    if note:
        root["description"] = f"{root.get('description', '')}\n{note}".strip()[:MAX_TEXT]
    if any(option.get("additionalProperties", True) is not False for option in objects):
        root.pop("additionalProperties", None)
    return root


def _either(held: Schema, part: Schema) -> Schema:
    """Join two schemas of one property; constants of a tagged union become one list."""
    if "enum" in held and "enum" in part and held.get("type") == part.get("type"):
        values = [*held["enum"], *(v for v in part["enum"] if v not in held["enum"])]
        return {**part, **held, "enum": values}
    options = held["anyOf"] if set(held) == {"anyOf"} else [held]
    return {"anyOf": [*options, part]} if part not in options else held


def _alternatives(objects: Sequence[Schema]) -> str:
    sets = [", ".join(option.get("required", ())) for option in objects]
    wanted = list(dict.fromkeys(text for text in sets if text))
    return f"Give one of these sets: {'; '.join(wanted)}." if len(wanted) > 1 else ""


def drop_unknown_required(node: Schema) -> None:
    """Keep only requirements that name a property of the copy."""
    names = [name for name in node.get("required", ()) if name in node.get("properties", {})]
    if names:
        node["required"] = names
    else:
        node.pop("required", None)


def nodes(schema: Schema) -> Iterator[Schema]:
    """Give ``schema`` and every schema in it."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        yield node
        for part in (node.get("items"), node.get("additionalProperties")):
            if isinstance(part, dict):
                waiting.append(part)
        waiting += node.get("properties", {}).values()
        waiting += node.get("anyOf", ())
