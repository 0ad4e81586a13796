"""Read one table of a settings file by its keys, and collect what is wrong in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kage.config.documents import Document
from kage.config.key import Key
from kage.config.schema import Place
from kage.config.values import Wrong, spell
from kage.core.errors import ConfigFault

MOST_FAULTS = 200
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HUMP = re.compile(r"(?<=[a-z0-9])[A-Z]")


@dataclass(slots=True)
class Report:
    """What reading has found so far."""

    faults: list[ConfigFault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    more: int = 0  # faults beyond the most that are kept

    def add(self, fault: ConfigFault) -> None:
        """Keep one mistake; a file made of nothing else fills no screen and no memory."""
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(fault)
        else:
            self.more += 1

    def note(self, text: str) -> None:
        """Keep one note, up to the same number."""
        if len(self.notes) < MOST_FAULTS:
            self.notes.append(text)

    def all_faults(self) -> tuple[ConfigFault, ...]:
        """Give the mistakes file by file, each from top to bottom."""
        files = {fault.file: index for index, fault in reversed([*enumerate(self.faults)])}
        ordered = sorted(self.faults, key=lambda fault: (files[fault.file], fault.line))
        if self.more:
            file = ordered[-1].file
            ordered.append(
                ConfigFault(file=file, line=0, key="", what=f"{self.more} more mistakes follow")
            )
        return tuple(ordered)


class Table:
    """One table: gives sound values, reports the rest; ``sound`` says whether all was well."""

    def __init__(
        self,
        document: Document,
        data: Mapping[str, Any],  # what TOML or JSON can hold
        report: Report,
        path: tuple[str, ...] = (),
        *,
        foreign: bool = False,
    ) -> None:
        self.document = document
        self.data = data
        self.report = report
        self.path = path
        self.foreign = foreign  # other programs share the file: their keys are not ours to judge
        self.sound = True

    @property
    def place(self) -> Place:
        """Where the table begins."""
        return self.document.place(self.path)

    def fault(
        self, what: str, *, key: str = "", expected: str = "", got: str = "", line: int = 0
    ) -> None:
        """Report a mistake at ``key``, or at the table itself."""
        self.sound = False
        path = (*self.path, key) if key else self.path
        self.report.add(
            ConfigFault(
                file=self.document.file,
                line=line or self.document.positions.line(path),
                key=dotted(path),
                what=what,
                expected=expected,
                got=got,
            )
        )

    def read(self, keys: Sequence[Key]) -> dict[str, Any]:
        """Give the sound values by the name of their key; tables are left to ``child``."""
        found: dict[str, Any] = {}
        written: dict[str, str] = {}
        for name in self.data:
            key = self._find(name, keys)
            if key is None:
                self._unknown(name, keys)
            elif key.name in written:
                self.fault(
                    f"means the same as {written[key.name]}, which stands there too", key=name
                )
            else:
                written[key.name] = name
                self._take(name, key, found)
        return found

    def child(self, name: str, *aliases: str) -> Table | None:
        """Give the table ``name`` inside this one, None when it is missing or none."""
        for spelled in (name, *aliases):
            if spelled in self.data:
                return self.table(spelled)
        return None

    def table(self, name: str) -> Table | None:
        """Give the table ``name``, which is there; None, and a fault, when it is no table."""
        value = self.data[name]
        if isinstance(value, dict):
            return Table(
                self.document, value, self.report, (*self.path, name), foreign=self.foreign
            )
        self.fault("has the wrong type", key=name, expected="a table", got=spell(value, hide=True))
        return None

    def spelled(self, key: Key) -> str | None:
        """Give the name ``key`` is written by here, None when it is not."""
        return next((name for name in self.data if self._find(name, (key,))), None)

    def note_later(self, name: str) -> None:
        """Say that ``name`` was understood and does nothing yet."""
        self.report.note(
            f"{self.document.place((*self.path, name))}: {dotted((*self.path, name))} "
            "has no effect in this version"
        )

    def _find(self, name: str, keys: Iterable[Key]) -> Key | None:
        spellings = {name, _snake(name)} if self.document.json else {name}
        for key in keys:
            if key.name in spellings or spellings.intersection(key.aliases):
                return key
        return None

    def _take(self, name: str, key: Key, found: dict[str, Any]) -> None:
        if key.later:
            self.note_later(name)
        if key.check is None:
            return
        value = self.data[name]
        try:
            found[key.name] = key.check(value)
        except Wrong as wrong:
            hide = wrong.hide or key.secret
            self.fault(wrong.what, key=name, expected=wrong.expected, got=spell(value, hide=hide))

    def _unknown(self, name: str, keys: Sequence[Key]) -> None:
        if self.foreign:
            place = self.document.place((*self.path, name))
            self.report.note(f"{place}: {dotted((*self.path, name))} is not used by kage")
            return
        near = (
            ""
            if self.report.more
            else nearest(name, [spelled for key in keys for spelled in (key.name, *key.aliases)])
        )
        hint = f'; did you mean "{near}"?' if near else ""
        self.fault(f"is not known{hint}", key=name)


def nearest(name: str, names: Iterable[str]) -> str:
    """Give the one of ``names`` that looks most like ``name``, "" when none does."""
    from difflib import get_close_matches

    plain = {known.lower().replace("-", "_"): known for known in names}
    found = get_close_matches(_snake(name[:64]).replace("-", "_").lower(), plain, n=1, cutoff=0.6)
    return plain[found[0]] if found else ""


def dotted(path: Iterable[str]) -> str:
    """Write ``path`` the way TOML does."""
    return ".".join(part if _BARE.fullmatch(part) else _quoted(part) for part in path)


def _quoted(part: str) -> str:
    return '"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _snake(name: str) -> str:
    return _HUMP.sub(lambda match: "_" + match[0].lower(), name)
