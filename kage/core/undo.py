"""What a call did to files, and what is known to undo it; plain data every room shares."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol


class Kind(StrEnum):
    """What stands at a path."""

    ABSENT = "absent"
    FILE = "file"
    LINK = "link"
    OTHER = "other"  # a folder, a pipe, a device: nothing that is restored


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What stands, or stood, at one path.

    ``mark`` tells two states apart: a SHA-256 of the bytes (of a link: of what it points at), or
    inode, size and time where the bytes were not read. ``blob`` names the bytes that are kept.
    """

    kind: Kind
    mode: int = 0  # permission bits of a file
    mark: str = ""
    blob: str = ""


ABSENT = State(kind=Kind.ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path a call changed; ``made`` are folders that were made for it, the upper ones first."""

    path: str  # absolute, no link in it
    shown: str  # as a person reads it
    before: State
    after: State
    made: tuple[str, ...] = ()

    @property
    def verb(self) -> str:
        """Say what happened: ``added``, ``deleted``, ``mode`` or ``changed``."""
        if self.before.kind is Kind.ABSENT:
            return "added"
        if self.after.kind is Kind.ABSENT:
            return "deleted"
        same = (self.before.kind, self.before.mark) == (self.after.kind, self.after.mark)
        return "mode" if same else "changed"

    @property
    def remedy(self) -> str:
        """Say what undoing it does, in a word or two."""
        words = {"added": "remove", "deleted": "bring back", "mode": "set mode"}
        return words.get(self.verb, "restore")

    @property
    def undoable(self) -> bool:
        """Whether what stood there before is known."""
        if self.after.kind is Kind.OTHER:
            return False
        return self.before.kind is Kind.ABSENT or bool(self.before.blob)


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """One line of what a call changed."""

    path: str
    verb: str
    undoable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a finished call did to files, as far as kage looked.

    ``note`` says what could not be looked at, or not be kept. ``claim_broken`` marks a call of a
    tool that claims to be read-only.
    """

    record: str = ""  # names the record it can be undone by; "" = it cannot
    files: tuple[Touched, ...] = ()  # the first ones
    total: int = 0
    beside: int = 0  # other calls that ran meanwhile: the changes may be theirs
    note: str = ""
    claim_broken: bool = False
    own: bool = False  # of a file tool of kage's own, whose result says it


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRecord:
    """What one call changed, kept in its session."""

    id: str
    call_id: str
    title: str  # "write src/a.py"
    at: float  # seconds since the epoch
    changes: tuple[Change, ...]
    beside: int = 0
    undoes: str = ""  # the record this one took back


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoItem:
    """A record as it is offered; ``why`` says why it cannot be undone, "" when it can."""

    record: UndoRecord
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoStep:
    """What undoing does to one path; ``conflict`` says why nothing may be done."""

    change: Change
    conflict: str = ""
    done: bool = False  # it stands as it stood before already
    left: str = ""  # why this one stays as it is while the others are restored


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPlan:
    """What undoing a record would do now; ``diff`` leads from what stands now to before."""

    record: UndoRecord
    steps: tuple[UndoStep, ...]
    diff: str = ""
    why: str = ""  # why it cannot be undone at all

    @property
    def conflicts(self) -> tuple[UndoStep, ...]:
        """The paths that changed since."""
        return tuple(step for step in self.steps if step.conflict)

    @property
    def possible(self) -> bool:
        """Whether it can be carried out."""
        work = any(not (step.done or step.left) for step in self.steps)
        return not self.why and not self.conflicts and work


class Keeper(Protocol):
    """Takes what a file tool is about to replace; one per call."""

    def replacing(
        self, path: Path, status: os.stat_result | None, data: bytes | None, made: tuple[str, ...]
    ) -> None:
        """Keep what stands at ``path``.

        Args:
            path: The file, links resolved.
            status: Its status, None when there is none.
            data: Its bytes, None when there is none or it is too large to be kept.
            made: Folders that are made for it.
        """
        ...

    def replaced(self, path: Path, mode: int, data: bytes) -> None:
        """Note what stands there now."""
        ...
