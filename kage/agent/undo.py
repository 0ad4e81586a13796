"""Take back what a call did to files: look first, then restore all of it or nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from kage.core.errors import KageError, SessionError, ToolError
from kage.core.ids import new_id
from kage.core.undo import (
    ABSENT,
    Change,
    Kind,
    State,
    UndoItem,
    UndoPlan,
    UndoRecord,
    UndoStep,
)
from kage.sessions.undo import NotKept, UndoStore
from kage.tools import diff, restore
from kage.tools.encoding import sniff

MAX_SHOWN = 256 << 10  # bytes of a file whose difference is shown
MAX_DIFFS = 20  # files of one call whose differences are shown
CHANGED = "it changed since"
_UNDO = "undo of "  # no title of a call begins so: there is no space in a tool's name


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What came of undoing."""

    record: UndoRecord  # what was undone
    restored: tuple[Change, ...]
    left: tuple[UndoStep, ...]  # whose former bytes were not kept
    call_id: str  # of the call whose changes went or came
    back: bool = False  # whether they came back: an undoing was undone
    again: str = ""  # the record that takes this back, "" when there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoDesk:
    """Undoes calls of one session; everything here blocks and belongs on a thread."""

    store: UndoStore
    redact: Callable[[str], str]

    def items(self) -> tuple[UndoItem, ...]:
        """Give what calls changed, newest first."""
        return self.store.items()

    def plan(self, name: str = "") -> UndoPlan:
        """Say what undoing a record (its id or its call's; "" for the newest) would do now.

        Raises:
            SessionError: there is no such record.
        """
        item = self.store.find(name) if name else self._newest()
        steps: list[UndoStep] = []
        texts: list[str] = []
        for change in item.record.changes:
            step, now = _look(change)
            steps.append(step)
            if not (step.done or step.left) and len(texts) < MAX_DIFFS:
                texts.append(self._difference(change, now))
        return UndoPlan(
            record=item.record,
            steps=tuple(steps),
            diff=self.redact("".join(texts)),
            why=item.why,
        )

    def carry_out(self, name: str) -> Undone:
        """Restore what stood before.

        Raises:
            KageError: a file changed since, nothing is left to do, or a file cannot be written.
        """
        plan = self.plan(name)
        _admit(plan)
        todo = _ordered(plan.steps)
        restored: list[Change] = []
        back: list[Change] = []
        trouble = ""
        with self.store.holding(plan.record):  # what stands there now needs room, too
            for change in todo:
                try:
                    kept = self._kept(change)
                    absent = change.before.kind is Kind.ABSENT
                    restore.put_back(change, None if absent else self.store.bytes_of(change.before))
                except (ToolError, SessionError) as error:
                    trouble = str(error)
                    break
                restored.append(change)
                back.append(
                    Change(path=change.path, shown=change.shown, before=kept, after=change.before)
                )
            again = self._note(plan.record, tuple(back), whole=not trouble) if back else ""
        if trouble:
            done = f"{len(restored)} of {len(todo)}"
            raise KageError(
                "The call is only partly undone" if restored else "The call is not undone",
                why=f"{trouble} ({done} files are restored)" if restored else trouble,
                fix="Undo it again when the reason is gone; what is restored stays.",
            )
        return Undone(
            record=plan.record,
            restored=tuple(restored),
            left=tuple(step for step in plan.steps if step.left),
            call_id=self.store.origin(plan.record).call_id,
            back=plan.record.title.startswith(_UNDO),
            again=again,
        )

    def _newest(self) -> UndoItem:
        for item in self.store.items():
            if not item.why and not item.record.title.startswith(_UNDO):
                return item
        raise SessionError("No call of this conversation can be undone")

    def _difference(self, change: Change, now: bytes | None) -> str:
        before = b""
        if change.before.kind is not Kind.ABSENT:
            try:
                before = self.store.bytes_of(change.before)
            except SessionError:
                return ""
        return difference(change.shown, now or b"", before)

    def _kept(self, change: Change) -> State:
        """Keep what stands there now, so that the undoing can be undone."""
        try:
            now, data = restore.look_at(change.path, like=change.after)
            blob = self.store.keep(data) if data is not None else ""
        except (OSError, ValueError, NotKept):
            return change.after  # restoring it counts for more
        return replace(now, blob=blob)

    def _note(self, record: UndoRecord, back: tuple[Change, ...], *, whole: bool) -> str:
        title = record.title
        made = UndoRecord(
            id=new_id("u"),
            call_id=new_id("c"),
            title=title.removeprefix(_UNDO) if title.startswith(_UNDO) else f"{_UNDO}{title}",
            at=time.time(),
            changes=back,
            undoes=record.id if whole else "",
        )
        try:
            self.store.add(made)
        except NotKept:
            return ""
        return made.id


def difference(shown: str, old: bytes, new: bytes) -> str:
    """Give the unified diff of two contents, a line of words where they are no short texts."""
    if max(len(old), len(new)) > MAX_SHOWN or None in (sniff(old), sniff(new)):
        return f"--- {shown}\n+++ {shown}\n\\ {len(old):,} bytes become {len(new):,}\n"
    texts = (data.decode("utf-8", "replace") for data in (old, new))
    return diff.unified(*texts, name=shown)


def _look(change: Change) -> tuple[UndoStep, bytes | None]:
    if not change.undoable:
        return UndoStep(change=change, left="its former bytes were not kept"), None
    try:
        now, data = restore.look_at(change.path, like=change.after)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or str(error)
        return UndoStep(change=change, conflict=f"it cannot be looked at ({why})"), None
    if restore.same(now, change.after):
        return UndoStep(change=change), data
    if restore.same(now, change.before) or (now == ABSENT == change.before):
        return UndoStep(change=change, done=True), data
    return UndoStep(change=change, conflict=CHANGED), data


def _admit(plan: UndoPlan) -> None:
    """Refuse what cannot be done as a whole.

    Raises:
        KageError: why not.
    """
    if plan.why:
        raise KageError("This call cannot be undone", why=plan.why)
    if plan.conflicts:
        names = ", ".join(step.change.shown for step in plan.conflicts[:5])
        more = f" and {len(plan.conflicts) - 5} more" if len(plan.conflicts) > 5 else ""
        raise KageError(
            f"Nothing was undone: {names}{more} changed since the call",
            fix="Take the later changes back first.",
        )
    if not plan.possible:
        raise KageError("There is nothing to undo: everything stands as it stood before")


def _ordered(steps: tuple[UndoStep, ...]) -> list[Change]:
    """Give the changes to take back: what was added goes first, from below, to make room."""
    todo = [step.change for step in steps if not (step.done or step.left)]
    added = [change for change in todo if change.before.kind is Kind.ABSENT]
    others = [change for change in todo if change.before.kind is not Kind.ABSENT]
    return [*sorted(added, key=lambda change: change.path, reverse=True), *others]
