"""Where each value of a server's entry comes from, and which weaker values it replaced."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kage.config import server_keys
from kage.config.key import Key
from kage.config.layers import Entry, Layer
from kage.config.schema import Place, ServerSpec
from kage.config.tables import Table

_SAME = {"enabled": "disabled"}  # two spellings of one field
_SHARED = {"auto_reconnect": "restart", "max_reconnect_attempts": "restart"}
_HIDDEN = ("env", "headers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value of one key, unexpanded; literal values of ``env`` and ``headers`` are hidden."""

    value: Any  # what TOML can hold
    layer: str
    place: Place | None = None  # None: no file holds it


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """One key of an entry: the value in force and what it replaced, the strongest first."""

    key: str
    now: Value
    replaced: tuple[Value, ...] = ()


def origins(declared: Sequence[Entry], chosen: Entry) -> tuple[Origin, ...]:
    """Explain every key of ``chosen``; ``declared`` are all entries of its name."""
    others = [entry for entry in reversed(declared) if entry is not chosen]
    found = []
    for field, names in _fields().items():
        now, *rest = _chain(chosen, field, names)
        replaced = [value for entry in others for value in _written(entry, field, names)]
        found.append(Origin(key=field, now=now, replaced=(*replaced, *rest)))
    return tuple(found)


def _fields() -> dict[str, tuple[Key, ...]]:
    """Give the fields of an entry that a file can set, each with its spellings."""
    known = {field.name for field in dataclasses.fields(ServerSpec)}
    found: dict[str, tuple[Key, ...]] = {}
    for key in server_keys.SERVER:
        field = _SAME.get(key.name, key.target)
        if field in known:
            found[field] = (*found.get(field, ()), key)
    return found


def _chain(entry: Entry, field: str, names: Sequence[Key]) -> Iterator[Value]:
    """Yield the values of one entry's key: its own, of ``[mcp]``, and kage's default."""
    own = tuple(_written(entry, field, names))
    yield from own
    shared = [
        Value(value=_plain(field, table.data[name]), layer=_layer(entry, table), place=place)
        for table in entry.shared
        for name, place in _spelled(table, _shared(field))
    ]
    if not own and shared:  # the value itself: several keys of [mcp] may make up one of an entry
        shared[0] = dataclasses.replace(shared[0], value=_plain(field, _of(entry.spec, field)))
    yield from shared
    default = _default(entry.spec, field)
    if not own and not shared:  # some defaults follow from other keys
        default = _of(entry.spec, field)
    yield Value(value=_plain(field, default), layer=Layer.DEFAULT.words)


def _written(entry: Entry, field: str, names: Sequence[Key]) -> Iterator[Value]:
    """Yield what the entry itself says."""
    if entry.table is None:
        value = _of(entry.spec, field)
        if value != _default(entry.spec, field):
            yield Value(value=_plain(field, value), layer=entry.layer.words)
        return
    for _, place in _spelled(entry.table, names):
        value = _plain(field, _of(entry.spec, field))
        yield Value(value=value, layer=entry.layer.words, place=place)
        return


def _spelled(table: Table, names: Iterable[Key]) -> Iterator[tuple[str, Place]]:
    for key in names:
        name = table.spelled(key)
        if name is not None:
            yield name, table.document.place((*table.path, name))


def _shared(field: str) -> tuple[Key, ...]:
    return tuple(key for key in server_keys.MCP if _SHARED.get(key.name, key.target) == field)


def _layer(entry: Entry, table: Table) -> str:
    own = entry.table is not None and entry.table.document is table.document
    return f"{(entry.layer if own else Layer.USER).words} [mcp]"


def _default(spec: ServerSpec, field: str) -> Any:
    return _of(ServerSpec(name=spec.name), field)


def _of(spec: ServerSpec, field: str) -> Any:
    return getattr(spec, field)


def _plain(field: str, value: Any) -> Any:
    """Give ``value`` as JSON holds it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {
            str(name): "(hidden)" if field in _HIDDEN and "${" not in str(item) else item
            for name, item in value.items()
        }
    return list(value) if isinstance(value, tuple) else value
