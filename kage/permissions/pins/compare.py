"""What speaks against a definition: another digest, a lost namesake, a lock, the person's word."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from kage.core.pins import (
    INSTRUCTIONS,
    Cause,
    Difference,
    HeldChange,
    Offered,
    PinnedDefinition,
    Verdict,
)
from kage.permissions.pins.diff import differences
from kage.permissions.pins.file import Known, shows
from kage.permissions.pins.likeness import likenesses
from kage.permissions.pins.lock import Lock
from kage.permissions.pins.record import Stand

ABSENT = "absent"  # stands for what mcp.lock does not list
BROKEN = "broken"  # and for what it says while nobody can read it
_LOST = Difference(part="before", pieces=(), notes=("kage has no copy of what it was",))


class Comparing:
    """Compares one list of a server.

    Args:
        offered: The list.
        stands: What counts of this server, by label.
        filed: Gives what its file holds, by label; asked only when something is new or different.
        lock: What ``mcp.lock`` says.
        label: Gives the name a definition is recorded under.
    """

    def __init__(
        self,
        offered: Offered,
        *,
        stands: Mapping[str, Stand],
        filed: Callable[[], Known],
        lock: Lock,
        label: Callable[[str], str],
    ) -> None:
        self.first: tuple[PinnedDefinition, ...] = ()  # offered, and never seen before
        self.changed: tuple[PinnedDefinition, ...] = ()  # changed, and let through: pin = "warn"
        self._offered = offered
        self._stands = stands
        self._read = filed
        self._filed: Known | None = None
        self._lock = lock
        self._label = label

    def verdict(self) -> Verdict:
        """Judge every definition; afterwards ``first`` and ``changed`` are known too."""
        offered = self._offered
        found: dict[str, HeldChange] = {}
        fresh: list[PinnedDefinition] = []
        for one in offered.definitions:
            stand = self._stands.get(self._label(one.name), Stand())
            change = self._against(one, stand)
            if change is not None:
                found[one.name] = change
            if not stand.digest and (change is None or change.cause is Cause.LOCKED):
                fresh.append(one)
        if offered.mode != "off":
            found |= self._odd(fresh)
        off = {name: c for name, c in found.items() if c.cause is Cause.DISABLED}
        if offered.mode == "ask":
            self.first = self._wanted(one for one in fresh if one.name not in found)
            return Verdict(held=found)
        if offered.mode == "off":
            return Verdict(held=off)
        return self._warned(found, off, fresh)

    def _warned(
        self,
        found: Mapping[str, HeldChange],
        off: Mapping[str, HeldChange],
        fresh: Iterable[PinnedDefinition],
    ) -> Verdict:
        changed = {n for n, c in found.items() if c.cause in (Cause.CHANGED, Cause.RENAMED)}
        every = self._offered.definitions
        self.changed = self._wanted(one for one in every if one.name in changed)
        self.first = self._wanted(o for o in fresh if o.name not in changed and o.name not in off)
        told = tuple(c for name, c in found.items() if name not in off)
        return Verdict(held=off, told=tuple(_passing(change) for change in told))

    def _wanted(self, definitions: Iterable[PinnedDefinition]) -> tuple[PinnedDefinition, ...]:
        wanted = self._offered.wanted
        return tuple(one for one in definitions if one.name in wanted)

    def _against(self, one: PinnedDefinition, stand: Stand) -> HeldChange | None:
        """Say what speaks against a definition, beside that nobody has seen it."""
        if stand.disabled:
            return self._change(one, stand, Cause.DISABLED)
        if self._offered.mode == "off" or _says_nothing(one):
            return None
        mark = self._mark(one)
        if mark and stand.digest == one.digest and stand.lock == mark:
            mark = ""  # the person accepted it against what the lock says
        if stand.digest and stand.digest != one.digest:
            before = shows(self._file().get(self._label(one.name)), stand.digest)
            return self._change(one, stand, Cause.CHANGED, before=before, mark=mark)
        if mark:
            wanted = self._lock.wanted(self._offered.server, one.name)
            before = shows(wanted, wanted.digest) if wanted is not None else None
            return self._change(one, stand, Cause.LOCKED, before=before, mark=mark)
        return None

    def _mark(self, one: PinnedDefinition) -> str:
        """Give what the lock wants instead, "" when it has nothing against it."""
        server = self._offered.server
        if not self._lock.speaks_of(server):
            return ""
        if self._lock.broken:
            return BROKEN
        wanted = self._lock.wanted(server, one.name)
        if wanted is None:
            return ABSENT
        return "" if wanted.digest == one.digest else wanted.digest

    def _odd(self, fresh: Iterable[PinnedDefinition]) -> dict[str, HeldChange]:
        """Hold what is new and is like one that is gone, or that the file knows otherwise."""
        found: dict[str, HeldChange] = {}
        new = {one.name: one for one in fresh if not _says_nothing(one)}
        if not new:
            return found
        filed = self._file()
        names = {self._label(one.name) for one in self._offered.definitions}
        for one in new.values():
            before = filed.get(self._label(one.name))
            if before is not None and before.digest != one.digest:
                stand, mark = Stand(since=before.since), self._mark(one)
                known = shows(before, before.digest)
                found[one.name] = self._change(one, stand, Cause.CHANGED, before=known, mark=mark)
        gone = [
            before
            for name, before in filed.items()
            if name not in names and name != INSTRUCTIONS and shows(before, before.digest)
        ]
        tools = (one for one in new.values() if one.name != INSTRUCTIONS and one.name not in found)
        for name, before in likenesses(tools, gone).items():
            one, stand = new[name], self._stands.get(self._label(name), Stand())
            mark = self._mark(one)
            found[name] = self._change(one, stand, Cause.RENAMED, before=before, mark=mark)
        return found

    def _change(
        self,
        one: PinnedDefinition,
        stand: Stand,
        cause: Cause,
        *,
        before: PinnedDefinition | None = None,
        mark: str = "",
    ) -> HeldChange:
        shown: tuple[Difference, ...] = ()
        if cause is not Cause.DISABLED:
            shown = differences(before.written if before is not None else {}, one.written)
            shown = shown if before is not None or mark == ABSENT else (_LOST, *shown)
        return HeldChange(
            server=self._offered.server,
            origin=self._offered.origin,
            name=one.name,
            digest=one.digest,
            cause=cause,
            was=before.name if before is not None and cause is Cause.RENAMED else "",
            since=stand.since,
            lock=mark,
            differences=shown,
            refused=stand.refused == one.digest,
        )

    def _file(self) -> Known:
        if self._filed is None:
            self._filed = self._read()
        return self._filed


def _says_nothing(one: PinnedDefinition) -> bool:
    """Say whether these are instructions without a word: nothing of them is offered."""
    return one.name == INSTRUCTIONS and not str(one.written.get("instructions", "")).strip()


def _passing(change: HeldChange) -> HeldChange:
    return dataclasses.replace(change, passed=True)
