"""What an importer makes: servers of another host in kage's words, and what had no word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kage.config.documents import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """One server of another host; ``problem`` says why it cannot be used."""

    name: str
    line: int  # 1-based; 0 when the file gives none
    table: Mapping[str, Any]  # a server's table as config.toml would have it
    notes: tuple[str, ...] = ()  # what was left behind or needs the person
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where the reading happens."""

    home: Path
    workspace: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Everything one file gave."""

    servers: tuple[Foreign, ...]
    notes: tuple[str, ...] = ()  # about the file as a whole


Reader = Callable[[Document, Surroundings], Collection]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How one host keeps its servers."""

    name: str  # what ``--from`` takes
    title: str
    read: Reader
    fits: Callable[[Document], int]  # how sure it is that a file is of this kind; 0 = it is not
    home: tuple[str, ...] = ()  # known places below the home folder
    project: tuple[str, ...] = ()  # known places below a project


def table(data: object, *path: str) -> Mapping[str, Any] | None:
    """Give the table at ``path``, None when there is none."""
    found = data
    for part in path:
        if not isinstance(found, dict) or part not in found:
            return None
        found = found[part]
    return found if isinstance(found, dict) else None


def entries(data: object, *path: str) -> Iterable[Mapping[str, Any]]:
    """Give those entries of a table of tables that are tables."""
    held = table(data, *path)
    return [one for one in held.values() if isinstance(one, dict)] if held else []


def uses(found: Iterable[Mapping[str, Any]], *names: str) -> int:
    """Count the keys called one of ``names``."""
    return sum(name in one for one in found for name in names)
