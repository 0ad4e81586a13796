"""Whether a new tool is one that is gone, under another name: how alike two definitions are."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kage.core.pins import PinnedDefinition

ALIKE = 0.5  # of 1, from where on two count as the same tool
_OF_SCHEMA = 0.6  # what the schema counts, the rest is the description
_COMMON = 40  # tools that share a word or a property, from where on it says nothing about one
_DEEPEST = 12
_WORDS = re.compile(r"\w+")

Features = tuple[frozenset[str], frozenset[str]]


def likenesses(
    new: Iterable[PinnedDefinition], gone: Iterable[PinnedDefinition]
) -> dict[str, PinnedDefinition]:
    """Find for each new tool the one that is gone and most like it; names without one are left out.

    Each one that is gone stands for all new ones that are like it.
    """
    left = list(gone)
    if not left:
        return {}
    bodies = {_body(one.written): one for one in left}
    features = [_features(one.written) for one in left]
    index: dict[str, list[int]] = defaultdict(list)
    for place, (schema, said) in enumerate(features):
        for feature in schema | said:
            index[feature].append(place)
    found = {}
    for one in new:
        same = bodies.get(_body(one.written))
        if same is None:
            best = _best(_features(one.written), features, index)
            same = left[best] if best is not None else None
        if same is not None:
            found[one.name] = same
    return found


def _best(mine: Features, features: list[Features], index: Mapping[str, list[int]]) -> int | None:
    """Give the place of the one most like ``mine``, looking only at those that share something."""
    shared: Counter[int] = Counter()
    held = sorted((index.get(feature, []) for feature in mine[0] | mine[1]), key=len)
    for places in filter(None, held):
        if len(places) <= _COMMON or not shared:  # the rarest always counts
            shared.update(places[:_COMMON])
    best, score = None, 0.0
    for place, _ in shared.most_common(_COMMON):
        found = alike(mine, features[place])
        if found > score:
            best, score = place, found
    return best if score >= ALIKE else None


def alike(one: Features, other: Features) -> float:
    """Say how alike two tools are, from 0 to 1."""
    words = _overlap(one[1], other[1])
    if not (one[0] or other[0]):
        return words
    return _OF_SCHEMA * _overlap(one[0], other[0]) + (1 - _OF_SCHEMA) * words


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    every = len(one | other)
    return len(one & other) / every if every else 0.0


def _body(definition: Mapping[str, Any]) -> str:
    rest = {part: definition.get(part) for part in ("description", "inputSchema", "outputSchema")}
    return json.dumps(rest, sort_keys=True, default=repr)


def _features(definition: Mapping[str, Any]) -> Features:
    schema = frozenset(
        f"{part}{feature}"
        for part in ("inputSchema", "outputSchema")
        for feature in _of_schema("", definition.get(part), 0)
    )
    said = definition.get("description")
    words = _WORDS.findall(said.lower()) if isinstance(said, str) else ()
    return schema, frozenset(f"word {word}" for word in words)


def _of_schema(path: str, schema: Any, depth: int) -> Iterator[str]:  # any JSON
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return
    inner = schema.get("properties")
    for name, value in inner.items() if isinstance(inner, dict) else ():
        place = f"{path}.{name}"
        yield place
        if isinstance(value, dict):
            yield f"{place} is {value.get('type')}"
            said = value.get("description")
            if isinstance(said, str):
                yield f"{place} says {said}"
            yield from _of_schema(place, value, depth + 1)
            yield from _of_schema(f"{place}[]", value.get("items"), depth + 1)
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        yield f"{path} needs {name}"
