"""Say which files changed while a call ran: looks before and after, also for calls side by side."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kage.core.sanitise import visible
from kage.core.undo import ABSENT, Kind, State
from kage.tools import restore
from kage.tools.effects.looking import MAX_COPY, Before, Eye, NotSeen
from kage.tools.effects.plain import PlainEye
from kage.tools.effects.program import Git, find
from kage.tools.effects.quick import Quick
from kage.tools.effects.repository import Repository

PATIENCE = 1.0  # seconds calls wait for the first look, all together
AFTER = 3.0  # seconds its result waits for the look after it
FIRST = 60.0  # seconds the first look may take, beside everything else
MAX_CHANGES = 1_000  # paths of one call that are told apart
MAX_SHOWN = 256 << 10  # bytes of a file whose change is shown
MAX_TRIES = 2  # first looks that may fail


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One path that changed, with the bytes before and after as far as they are known."""

    path: Path
    shown: str
    before: State
    after: State
    old: bytes | None = None
    new: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What came of looking around one call."""

    seen: tuple[Seen, ...] = ()
    total: int = 0  # of paths, when they are too many to be told apart
    beside: int = 0  # other calls that ran meanwhile
    note: str = ""


@dataclass(slots=True)
class _Running:
    """A call that runs: what changed since it began."""

    blind: str = ""  # why nothing can be said
    changed: dict[bytes, Before] = field(default_factory=dict)
    beside: int = 0


class Watch:
    """Looks at one workspace for one session.

    Args:
        workspace: The folder looked at.
        folder: Where what looking needs is kept; removed when the watch is closed.
        environ: Where git is looked up.
        without: Folders that are not looked at.
    """

    def __init__(
        self,
        workspace: Path,
        folder: Path,
        *,
        environ: Mapping[str, str],
        without: Iterable[Path] = (),
    ) -> None:
        self.workspace = workspace
        self._without = _inside(workspace, without)
        self._eye: Eye = PlainEye(workspace=workspace)
        if (program := find(environ, workspace)) is not None:
            git = Git(program=program, workspace=workspace, folder=folder)
            self._eye = Repository(git=git, quick=Quick(workspace), without=self._without)
        self._running: dict[str, _Running] = {}
        self._writing = 0
        self._lock = asyncio.Lock()
        self._first: asyncio.Task[str] | None = None
        self._waited = 0.0  # seconds, by calls that gave up on the first look
        self._next: asyncio.Task[str] | None = None  # a look that has not begun
        self._closed = False
        self._failed = 0
        self._hopeless = ""  # why no call is looked at any more

    def warm(self) -> None:
        """Begin the first look, while the person is being asked."""
        if self._first is None and not self._hopeless:
            self._first = asyncio.create_task(self._look(FIRST))

    async def begin(self, call_id: str) -> None:
        """Look before a call; it is told apart from the others by its id."""
        running = _Running()
        self._running[call_id] = running
        self._count()
        self.warm()
        if self._first is None:
            running.blind = self._hopeless
            return
        began = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, PATIENCE - self._waited)):
                running.blind = await asyncio.shield(self._first)
        except TimeoutError:
            running.blind = "the first look at the workspace was not over"
            self._waited += time.monotonic() - began
            return
        self._waited = 0.0
        running.blind = running.blind or await self._look(AFTER)
        running.changed.clear()  # what changed before it began

    async def end(self, call_id: str) -> Outlook:
        """Look after a call, and say what changed since it began."""
        running = self._running.get(call_id)
        if running is None:
            return Outlook()
        try:
            if not running.blind:
                running.blind = await self._look(AFTER)
            if running.blind:
                return Outlook(note=f"what it changed is not known: {running.blind}")
            async with self._lock:
                return await asyncio.to_thread(self._outlook, running)
        finally:
            self._running.pop(call_id, None)

    def forget(self, call_id: str) -> None:
        """Give up on a call that never ran."""
        self._running.pop(call_id, None)

    def wrote(self, *, begins: bool) -> None:
        """Note that a file tool of kage's own begins or ends."""
        self._writing += 1 if begins else -1
        self._count()

    async def close(self) -> None:
        """Remove what was kept for looking."""
        self._closed = True
        self._eye.stop()
        async with self._lock:
            await asyncio.to_thread(self._eye.close)

    def _count(self) -> None:
        together = len(self._running) + self._writing
        for running in self._running.values():
            running.beside = max(running.beside, together - 1)

    async def _look(self, seconds: float) -> str:
        """Look, and tell every running call; gives why it failed, "" when it did not.

        Whoever asks before it begins shares it.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._look_once(seconds))
        return await asyncio.shield(self._next)

    async def _look_once(self, seconds: float) -> str:
        async with self._lock:
            self._next = None
            if self._closed:
                return "kage is closing"
            try:
                found = await asyncio.to_thread(self._eye.refresh, seconds=seconds)
            except NotSeen as error:
                why = str(error)
                for running in self._running.values():
                    running.blind = running.blind or why
                self._first = None  # the next call tries again
                self._failed += 1
                self._hopeless = why if self._failed >= MAX_TRIES else ""
                return why
        self._failed = 0
        for running in self._running.values():
            for path, before in found.items():
                if not path.startswith(self._without):
                    running.changed.setdefault(path, before)
        return ""

    def _outlook(self, running: _Running) -> Outlook:
        changed = running.changed
        if len(changed) > MAX_CHANGES:
            note = f"more than {MAX_CHANGES:,} files changed, too many to be undone"
            return Outlook(total=len(changed), beside=running.beside, note=note)
        old = self._former(changed)
        seen = [
            item
            for path, before in sorted(changed.items())
            if (item := self._compared(path, before, old)) is not None
        ]
        return Outlook(seen=tuple(seen), total=len(seen), beside=running.beside if seen else 0)

    def _former(self, changed: Mapping[bytes, Before]) -> Mapping[str, bytes]:
        oids = tuple({before.oid: None for before in changed.values() if before.oid})
        return self._eye.former(oids)

    def _compared(self, path: bytes, before: Before, former: Mapping[str, bytes]) -> Seen | None:
        """Look at a path now; None when it is as it was."""
        place = Path(os.path.realpath(self.workspace)) / os.fsdecode(path)
        like = before.state if before.state.mark else None
        try:
            after, new = restore.look_at(place, like=like, most=MAX_COPY)
        except (OSError, ValueError):
            after, new = State(kind=Kind.OTHER), None
        old = former.get(before.oid) if before.oid else None
        state = before.state
        if old is not None:
            state = State(kind=state.kind, mode=state.mode, mark=restore.mark_of(old))
        if restore.same(state, after) or (state.kind is Kind.ABSENT and after == ABSENT):
            return None
        if new is not None and len(new) > MAX_SHOWN:
            new = None
        shown = visible(os.fsdecode(path), single_line=True)
        return Seen(path=place, shown=shown, before=state, after=after, old=old, new=new)


def _inside(workspace: Path, folders: Iterable[Path]) -> tuple[bytes, ...]:
    """Give the folders inside the workspace as beginnings of paths in it."""
    root = Path(os.path.realpath(workspace))
    found: list[bytes] = []
    for folder in folders:
        real = Path(os.path.realpath(folder))
        if real != root and real.is_relative_to(root):
            found.append(os.fsencode(real.relative_to(root)) + b"/")
    return tuple(found)
