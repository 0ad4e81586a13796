"""All scanners in one table, and how texts, arguments and definitions are put before them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kage.core.tools import ToolSpec
from kage.permissions.scanners.encoded import decoded, encoded
from kage.permissions.scanners.flag import Code, Flag, Kind
from kage.permissions.scanners.hidden import escapes, hidden
from kage.permissions.scanners.leaving import leaving
from kage.permissions.scanners.orders import imitations, orders

TABLE: tuple[Callable[[str, Kind], Iterator[Flag]], ...] = (
    hidden,
    escapes,
    orders,
    imitations,
    encoded,
    leaving,
)
INSIDE = (orders, leaving)  # also asked about what base64 says
MOST = 6  # flags of one thing; more would bury the call
_EACH = 100_000  # characters looked at, at the start of one text
_ALL = 200_000  # of one thing
_TEXTS = 5_000
_PLAIN = 24  # characters of a field's name that say nothing
_KEPT = 20_000  # tools whose flags are remembered


def scan(text: str, kind: Kind) -> tuple[Flag, ...]:
    """Give what the scanners see in ``text``, one flag a kind; deterministic, never raises."""
    text = text[:_EACH]
    found = [flag for scanner in TABLE for flag in scanner(text, kind)]
    if any(flag.code is Code.BASE64 for flag in found):
        found += [
            dataclasses.replace(flag, words=f"{flag.words}, inside base64")
            for said in decoded(text)
            for scanner in INSIDE
            for flag in scanner(said, kind)
        ]
    return tuple({(flag.code, flag.words): flag for flag in found}.values())


def scan_all(texts: Iterable[tuple[str, str]], kind: Kind) -> tuple[Flag, ...]:
    """Give what is seen in (where, text) pairs, the same sight once, at most ``MOST``."""
    seen: dict[tuple[Code, str], Flag] = {}
    left = _ALL
    for where, text in texts:
        for flag in scan(text[:left], kind):
            seen.setdefault((flag.code, flag.words), dataclasses.replace(flag, where=where))
        left -= len(text)
        if left <= 0:
            break
    return tuple(seen.values())[:MOST]


def strings(value: object, where: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts in JSON with their places: ``body.items[2]``; names of fields too."""
    waiting: list[tuple[str, object]] = [(where, value)]
    for _ in range(_TEXTS):
        if not waiting:
            return
        place, item = waiting.pop()
        if isinstance(item, str):
            yield place, item
        elif isinstance(item, Mapping):
            for key, inner in reversed(list(item.items())):
                name = str(key)
                waiting.append((f"{place}.{name}" if place else name, inner))
                if not (name.isascii() and name.isprintable() and len(name) < _PLAIN):
                    waiting.append((place, name))
        elif isinstance(item, list | tuple):
            waiting += [(f"{place}[{at}]", inner) for at, inner in enumerate(item)][::-1]


def definition_flags(tool: ToolSpec) -> tuple[Flag, ...]:
    """Give what is seen in a tool's definition: names, words and schemas."""
    if tool.server is None:
        return ()
    key = (tool.name, tool.server.pin, tool.full_description or tool.description)
    known = _DEFINITIONS.get(key)
    if known is None:
        if len(_DEFINITIONS) >= _KEPT:
            _DEFINITIONS.clear()
        known = _DEFINITIONS[key] = scan_all(_definition(tool), Kind.DEFINITION)
    return known


_DEFINITIONS: dict[tuple[str, str, str], tuple[Flag, ...]] = {}  # screens ask again and again


def _definition(tool: ToolSpec) -> Iterator[tuple[str, str]]:
    assert tool.server is not None
    yield "name", tool.server.original
    yield "title", tool.title
    yield "description", tool.full_description or tool.description
    yield from strings(tool.schema, "schema")
    if tool.output_schema is not None:
        yield from strings(tool.output_schema, "output schema")


@functools.lru_cache(maxsize=200)
def instruction_flags(text: str) -> tuple[Flag, ...]:
    """Give what is seen in the instructions of a server."""
    return scan_all((("", text),), Kind.INSTRUCTIONS)


def argument_flags(arguments: Mapping[str, Any]) -> tuple[Flag, ...]:
    """Give what is seen in the arguments of a call."""
    return scan_all(strings(arguments), Kind.ARGUMENTS)
