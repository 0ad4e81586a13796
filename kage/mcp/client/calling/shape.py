"""Say whether a structured result fits the schema its tool promised, in bounded time.

The schema comes from the server, so nothing in it may cost more than a fixed number of steps:
patterns are not matched and references are followed only inside the document. What cannot be
judged within the budget counts as fitting, since the answer is only a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BUDGET = 20_000  # schema nodes looked at for one result
_DEPTH = 60
_KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (Mapping,),
    "array": (list, tuple),
    "string": (str,),
    "number": (int, float),
    "integer": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


class _Spent(Exception):
    """The budget is used up."""


def misfit(schema: Mapping[str, Any], value: object) -> str:
    """Give the first place where ``value`` breaks ``schema``, in words; "" when there is none."""
    try:
        return _Checker(schema).check(schema, value, "", 0)
    except _Spent:
        return ""


class _Checker:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _BUDGET

    def check(self, schema: object, value: object, path: str, depth: int) -> str:
        self._left -= 1
        if self._left < 0 or depth > _DEPTH:
            raise _Spent
        if schema is False:
            return f"{path or 'the result'} is not allowed"
        if not isinstance(schema, Mapping):
            return ""
        if "$ref" in schema:
            target = self._resolve(schema["$ref"])
            if wrong := self.check(target, value, path, depth + 1):
                return wrong
        return (
            _kind_misfit(schema, value, path)
            or self._object(schema, value, path, depth)
            or self._array(schema, value, path, depth)
            or self._combined(schema, value, path, depth)
        )

    def _object(self, schema: Mapping[str, Any], value: object, path: str, depth: int) -> str:
        if not isinstance(value, Mapping):
            return ""
        required = schema.get("required")
        for name in required if isinstance(required, list) else ():
            if name not in value:
                return f"{path or 'the result'} lacks {name!r}"
        properties = schema.get("properties")
        known: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        rest = schema.get("additionalProperties", True)
        if schema.get("patternProperties"):
            rest = True
        for name, item in value.items():
            inner = known.get(name, rest)
            if wrong := self.check(inner, item, f"{path}/{name}", depth + 1):
                return wrong
        return ""

    def _array(self, schema: Mapping[str, Any], value: object, path: str, depth: int) -> str:
        if not isinstance(value, list | tuple):
            return ""
        prefix = schema.get("prefixItems")
        heads = prefix if isinstance(prefix, list) else []
        rest = schema.get("items", True)
        for index, item in enumerate(value):
            inner = heads[index] if index < len(heads) else rest
            if wrong := self.check(inner, item, f"{path}/{index}", depth + 1):
                return wrong
        return ""

    def _combined(self, schema: Mapping[str, Any], value: object, path: str, depth: int) -> str:
        every = schema.get("allOf")
        for inner in every if isinstance(every, list) else ():
            if wrong := self.check(inner, value, path, depth + 1):
                return wrong
        for key in ("anyOf", "oneOf"):
            choices = schema.get(key)
            if isinstance(choices, list) and choices:
                wrongs = [self.check(inner, value, path, depth + 1) for inner in choices]
                if all(wrongs):
                    return f"{path or 'the result'} fits none of the {len(wrongs)} shapes allowed"
        return ""

    def _resolve(self, reference: object) -> object:
        if not isinstance(reference, str) or not reference.startswith("#"):
            return True  # never fetched
        target: object = self._root
        for part in reference.removeprefix("#").split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or key not in target:
                return True
            target = target[key]
        return target


def _kind_misfit(schema: Mapping[str, Any], value: object, path: str) -> str:
    place = path or "the result"
    kinds = schema.get("type")
    names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    if names and not any(_is(name, value) for name in names):
        return f"{place} is no {' or '.join(map(str, names))}"
    if "const" in schema and not _same(schema["const"], value):
        return f"{place} is not the one value allowed"
    allowed = schema.get("enum")
    if isinstance(allowed, list) and not any(_same(item, value) for item in allowed):
        return f"{place} is none of the {len(allowed)} values allowed"
    return ""


def _is(name: object, value: object) -> bool:
    kinds = _KINDS.get(name) if isinstance(name, str) else None
    if kinds is None:
        return True
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, kinds)


def _same(one: object, other: object) -> bool:
    # JSON tells true from 1, Python does not
    return isinstance(one, bool) == isinstance(other, bool) and one == other
