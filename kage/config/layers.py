"""Which entry counts when several files declare a server of one name.

An entry replaces the weaker one of its name as a whole. What comes from a project or a plugin
counts only once a person trusts it; until then it replaces nothing. A locked entry stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from kage.config.schema import ServerSpec
from kage.config.tables import Table
from kage.core.sandbox import is_looser

Trusted = Callable[[ServerSpec], bool]


class Layer(IntEnum):
    """Where an entry comes from, the weakest first."""

    DEFAULT = 0  # what kage itself assumes; values only
    PLUGIN_DEFAULT = 1  # a plugin's ``add_server{default = true}``
    USER = 2
    PROJECT = 3
    EXTRA = 4  # ``--mcp-config``
    PLUGIN = 5  # a plugin's ``add_server``

    @property
    def words(self) -> str:
        """Name it for a person."""
        return _WORDS[self]


_WORDS = {
    Layer.DEFAULT: "default",
    Layer.PLUGIN_DEFAULT: "plugin default",
    Layer.USER: "user",
    Layer.PROJECT: "project",
    Layer.EXTRA: "--mcp-config",
    Layer.PLUGIN: "plugin",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One declaration of a server, as one layer has it."""

    spec: ServerSpec
    layer: Layer
    table: Table | None = field(default=None, compare=False)  # None: no file holds it
    shared: tuple[Table, ...] = field(default=(), compare=False)  # [mcp] tables, strongest first

    @property
    def where(self) -> str:
        """Where it stands, for messages."""
        return str(self.spec.place or self.spec.origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The entries that count, and what became of the others."""

    servers: Mapping[str, ServerSpec]
    waiting: tuple[ServerSpec, ...]  # would replace the one in force, were they trusted
    notes: tuple[str, ...]
    advice: tuple[str, ...]  # what a person could trust


def plugin_entries(
    specs: Iterable[ServerSpec], *, defaults: Iterable[ServerSpec] = ()
) -> tuple[Entry, ...]:
    """Give the layers of what plugins declare: ``defaults`` lose to everything else."""
    return (
        *(Entry(spec=spec, layer=Layer.PLUGIN_DEFAULT) for spec in defaults),
        *(Entry(spec=spec, layer=Layer.PLUGIN) for spec in specs),
    )


def only_own(spec: ServerSpec) -> bool:
    """Trust what the person wrote and nothing else."""
    return spec.origin == "user"


def of_name(entries: Iterable[Entry], name: str) -> tuple[Entry, ...]:
    """Give the declarations of one server, the weakest first."""
    return tuple(sorted((e for e in entries if e.spec.name == name), key=lambda e: e.layer))


def in_force(entries: Sequence[Entry], trusted: Trusted) -> Entry:
    """Choose among the declarations of one server, which stand weakest first.

    The first locked one stays whatever comes after it. When none is trusted it is the strongest,
    which is then named and not started.
    """
    counting = [entry for entry in entries if trusted(entry.spec)]
    locked = [entry for entry in counting if entry.spec.locked]
    return (locked[:1] or counting[-1:] or [entries[-1]])[0]


def kept_strict(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Give the entries, none of a project or plugin in a looser sandbox than the person's of it."""
    every = tuple(entries)
    return tuple(
        entry
        if entry.spec.origin == "user"
        else replace(entry, spec=_kept(entry.spec, [e.spec for e in of_name(every, name)]))
        for entry in every
        for name in (entry.spec.name,)
    )


def _kept(spec: ServerSpec, declared: Iterable[ServerSpec]) -> ServerSpec:
    for own in declared:
        if own.origin == "user" and spec.command and is_looser(spec.sandbox, own.sandbox):
            spec = replace(spec, sandbox=own.sandbox)
    return spec


def merge(entries: Iterable[Entry], trusted: Trusted = only_own) -> Merged:
    """Put the layers together; each override is told in a note."""
    every = tuple(entries)
    servers: dict[str, ServerSpec] = {}
    waiting: list[ServerSpec] = []
    notes: list[str] = []
    advice: list[str] = []
    for name in dict.fromkeys(entry.spec.name for entry in every):
        declared = of_name(every, name)
        chosen = in_force(declared, trusted)
        servers[name] = chosen.spec
        place = declared.index(chosen)
        for entry in declared[:place]:
            notes.append(f"{chosen.where}: {name} replaces {entry.where}")
        for entry in declared[place + 1 :]:
            if chosen.spec.locked:
                notes.append(
                    f"{entry.where}: {name} is locked in {chosen.where}, which stays in force"
                )
            else:
                waiting.append(entry.spec)
                advice.append(
                    f"{entry.where}: {name} replaces {chosen.where} only once you trust it: "
                    f"kage mcp trust {name}"
                )
    return Merged(servers=servers, waiting=tuple(waiting), notes=tuple(notes), advice=tuple(advice))
