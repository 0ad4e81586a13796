"""Servers as other hosts keep them: find such files, tell their format, read them.

One file per format; ``read`` is the way in. A bad entry costs only itself and is named, and
whatever kage has no word for is told per entry.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kage.config.documents import Document, Unreadable, parse_json, parse_toml, read_text
from kage.config.importers import (
    claude,
    codex,
    cursor,
    gemini,
    goose,
    langchain,
    lango,
    nanobot,
    opencode,
    openparallax,
    own,
    vscode,
)
from kage.config.importers.entry import Entry
from kage.config.importers.foreign import Collection, Foreign, Format, Surroundings
from kage.config.importers.shapes import read_one
from kage.config.importers.variables import Words, same
from kage.config.positions import Positions
from kage.config.schema import SERVER_NAME
from kage.config.servers import bad_name, read_server
from kage.config.tables import Report, Table
from kage.core.errors import ConfigFault, UsageError

__all__ = [
    "FORMATS",
    "Foreign",
    "Format",
    "Found",
    "Surroundings",
    "judged",
    "known_places",
    "plain_entry",
    "read",
    "suggested",
]

FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        claude.DESKTOP,
        claude.CODE,
        cursor.FORMAT,
        vscode.FORMAT,
        codex.FORMAT,
        gemini.FORMAT,
        opencode.FORMAT,
        goose.FORMAT,
        lango.FORMAT,
        nanobot.FORMAT,
        openparallax.FORMAT,
        langchain.FORMAT,
        own.FORMAT,
    )
}
_STRING = r'("(?:[^"\\\n]|\\.)*")'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one file of another host holds."""

    file: Path
    format: Format
    servers: tuple[Foreign, ...]
    notes: tuple[str, ...] = ()


def known_places(around: Surroundings, *, project: bool) -> Iterator[tuple[Path, Format]]:
    """Give the files other hosts are known to keep, those that are there."""
    base = around.workspace if project else around.home
    for one in FORMATS.values():
        for place in one.project if project else one.home:
            file = base / place
            if file.is_file():
                yield file, one


def read(file: Path, around: Surroundings, *, format_name: str = "") -> Found:
    """Read the servers in ``file``; its format is told by its content unless it is named.

    Raises:
        UsageError: no format fits, or ``format_name`` is none.
        Unreadable: the file cannot be read or parsed; with the place.
    """
    if format_name and format_name not in FORMATS:
        raise UsageError(
            f"There is no format {format_name!r}", fix=f"Choose from {', '.join(FORMATS)}"
        )
    document = _document(file)
    chosen = FORMATS[format_name] if format_name else _guess(document)
    collection: Collection = chosen.read(document, around)
    servers = tuple(judged(one, file) for one in collection.servers)
    return Found(file=file, format=chosen, servers=servers, notes=collection.notes)


def _document(file: Path) -> Document:
    try:
        text = read_text(file, named=True).removeprefix("\ufeff")
    except (FileNotFoundError, NotADirectoryError):
        raise Unreadable(ConfigFault(file=file, line=0, key="", what="does not exist")) from None
    if file.suffix == ".toml":
        return parse_toml(file, text)
    if file.suffix in {".yaml", ".yml"}:
        return _yaml(file, text)
    if file.suffix in {".json", ".jsonc", ".json5"} or text.lstrip()[:1] in {"{", "/"}:
        return parse_json(file, _COMMA.sub(_blank, _COMMENT.sub(_blank, text)))
    try:
        return parse_toml(file, text)
    except Unreadable:
        return _yaml(file, text)


def _yaml(file: Path, text: str) -> Document:
    from kage.config.importers.yaml import parse_yaml

    return parse_yaml(file, text)


def _blank(match: re.Match[str]) -> str:
    """Take a comment or a comma too many out of JSON; lines stay where they are."""
    return match[1] or re.sub(r"[^\n]", " ", match[0])


def _guess(document: Document) -> Format:
    place = document.file.as_posix()
    scores = {
        name: one.fits(document) + 20 * place.endswith((*one.home, *one.project))
        for name, one in FORMATS.items()
        if one.fits(document)
    }
    if not scores:
        raise UsageError(
            f"{document.file} holds no servers kage can find",
            fix=f"Say what wrote it: --from {' | '.join(FORMATS)}",
        )
    return FORMATS[max(scores, key=lambda name: scores[name])]


def plain_entry(name: str, raw: object) -> Foreign:
    """Read one entry as most hosts write it, kage's own keys included."""
    return read_one(Entry(name, raw, 1, Words(translate=same)), own.server)


def judged(one: Foreign, file: Path) -> Foreign:
    """Put an entry through the checks of kage's own files; what is wrong is its ``problem``."""
    if one.problem:
        return one
    if problem := bad_name(one.name):
        return dataclasses.replace(one, problem=f"it {problem}", table=_checked(one, file).table)
    return _checked(one, file)


def _checked(one: Foreign, file: Path) -> Foreign:
    report = Report()
    data = {"mcp": {"servers": {one.name: dict(one.table)}}}
    document = Document(file=file, data=data, positions=Positions())
    path = ("mcp", "servers", one.name)
    name = one.name if not bad_name(one.name) else "name"
    spec = read_server(Table(document, one.table, report, path), name, origin="user", defaults={})
    if spec is not None:
        return one
    fault = report.faults[0]
    key = fault.key.rpartition(".")[2]
    text = f"{key} {fault.what}" + (f", expected {fault.expected}" if fault.expected else "")
    return dataclasses.replace(one, problem=text)


def suggested(name: str) -> str:
    """Give a name kage takes that looks like ``name``, "" when nothing is left of it."""
    found = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")
    found = re.sub(r"__+", "_", found)[:32].strip("-._")
    return found if SERVER_NAME.fullmatch(found) and not bad_name(found) else ""
