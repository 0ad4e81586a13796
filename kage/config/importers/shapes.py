"""Go through a table of servers, one entry at a time; a bad one costs only itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kage.config.documents import Document
from kage.config.importers.entry import Bad, Entry
from kage.config.importers.foreign import Collection, Foreign, Surroundings, table
from kage.config.importers.variables import Words

MOST = 1000  # servers of one file


def read_map(
    document: Document,
    path: tuple[str, ...],
    read: Callable[[Entry], None],
    words: Callable[[], Words],
) -> tuple[Foreign, ...]:
    """Read the table of servers at ``path`` with ``read``; () when there is none."""
    held = table(document.data, *path)
    found = []
    for name, raw in list((held or {}).items())[:MOST]:
        line = document.positions.line((*path, str(name)))
        found.append(read_one(Entry(str(name), raw, line, words()), read))
    return tuple(found)


def read_one(entry: Entry, read: Callable[[Entry], None]) -> Foreign:
    """Read one entry; what is wrong with it becomes its ``problem``."""
    try:
        read(entry)
    except Bad as error:
        return entry.done(str(error))
    return entry.done()


def mapped(
    path: tuple[str, ...], read: Callable[[Entry], None], words: Callable[[], Words]
) -> Callable[[Document, Surroundings], Collection]:
    """Make the reader of a format that is one table of servers."""

    def whole(document: Document, around: Surroundings) -> Collection:
        return Collection(servers=read_map(document, path, read, words))

    return whole


def settings(document: Document, known: Mapping[str, str]) -> tuple[str, ...]:
    """Tell about settings beside the servers: what each is in kage, or that it has no word."""
    found: list[str] = []
    data: Mapping[str, Any] = document.data
    for key, meaning in known.items():
        if key in data:
            found.append(f"{key}: {meaning}")
    return tuple(found)
