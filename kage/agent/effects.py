"""What the calls of a session do to files: kept before, looked at after, told in their results."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kage.agent.undo import UndoDesk, difference
from kage.config.schema import UndoSpec
from kage.core.gate import CallRequest
from kage.core.ids import new_id
from kage.core.redact import Redactor
from kage.core.sanitise import clip, visible
from kage.core.tools import Risk, ServerTool, ToolSpec
from kage.core.undo import ABSENT, Change, Effect, Kind, State, Touched, UndoRecord
from kage.sessions.undo import FOLDER, SNAPSHOT, NotKept, UndoStore
from kage.sessions.writer import Session
from kage.tools import restore
from kage.tools.confine import shown_path
from kage.tools.effects.watch import Outlook, Seen, Watch

MAX_TOLD = 50  # files an effect names
MAX_DIFFS = 20  # files of one call whose differences are shown
_TITLE = 100  # characters
_TELLING = ("path", "command", "file_path", "name", "uri")


class Claims(Protocol):
    """What is remembered of tools that did not keep their word; ``permissions.claims``."""

    def broke(self, tool: ServerTool, files: tuple[str, ...]) -> None:
        """Remember that a tool claims to be read-only and changed files."""
        ...


@dataclass(slots=True)
class Keeping:
    """Implements ``core.undo.Keeper`` for one call of a file tool."""

    store: UndoStore
    workspace: Path
    changes: list[Change] = field(default_factory=list)
    trouble: str = ""
    _before: dict[Path, tuple[State, tuple[str, ...]]] = field(default_factory=dict)

    def replacing(
        self, path: Path, status: os.stat_result | None, data: bytes | None, made: tuple[str, ...]
    ) -> None:
        """See ``Keeper``."""
        if status is None:
            self._before[path] = ABSENT, made
            return
        blob = ""
        if data is None:
            self.trouble = "the file is too large to be kept"
        else:
            try:
                blob = self.store.keep(data)
            except NotKept as error:
                self.trouble = str(error)
        mark = restore.mark_of(data) if data is not None else restore.by_status(status).mark
        mode = stat.S_IMODE(status.st_mode)
        self._before[path] = State(kind=Kind.FILE, mode=mode, mark=mark, blob=blob), made

    def replaced(self, path: Path, mode: int, data: bytes) -> None:
        """See ``Keeper``."""
        before, made = self._before.pop(path, (ABSENT, ()))
        after = State(kind=Kind.FILE, mode=mode, mark=restore.mark_of(data))
        if not restore.same(before, after):
            shown = shown_path(path, self.workspace)
            self.changes.append(
                Change(path=str(path), shown=shown, before=before, after=after, made=made)
            )


class Effects:
    """Looks after the calls of one session.

    Args:
        session: Whose calls they are.
        workspace: The folder that is looked at.
        environ: Where git is looked up.
        own: Folders kage itself writes to; they are not looked at.
        spec: What the settings say.
        redact: Takes secrets out of what is shown.
        claims: Where broken claims are remembered.
    """

    def __init__(
        self,
        session: Session,
        workspace: Path,
        *,
        environ: Mapping[str, str],
        own: Iterable[Path] = (),
        spec: UndoSpec,
        redact: Redactor,
        claims: Claims | None,
    ) -> None:
        folder = session.folder / FOLDER
        self.session_id = session.id
        self.desk = UndoDesk(store=UndoStore(folder, most=spec.keep_mb << 20), redact=redact)
        self._workspace = workspace
        self._keeps = spec.keep_mb > 0
        self._redact = redact
        self._claims = claims
        self._watch: Watch | None = None
        if spec.snapshots and not _holds_home(workspace, environ):
            self._watch = Watch(workspace, folder / SNAPSHOT, environ=environ, without=own)
        self._keeping: dict[str, Keeping] = {}

    def warm(self, tool: ToolSpec) -> None:
        """Begin the first look at the workspace, since a call is being asked about."""
        if self._watch is not None and tool.risk is Risk.EXEC:
            self._watch.warm()

    async def begin(self, request: CallRequest) -> Keeping | None:
        """Look before a call runs; gives what a file tool hands former bytes to."""
        match request.tool.risk:
            case Risk.EXEC if self._watch is not None:
                try:
                    await self._watch.begin(request.call_id)
                except asyncio.CancelledError:
                    self._watch.forget(request.call_id)
                    raise
            case Risk.WRITE:
                if self._watch is not None:
                    self._watch.wrote(begins=True)
                if not self._keeps:
                    return None
                keeping = Keeping(self.desk.store, self._workspace)
                self._keeping[request.call_id] = keeping
                return keeping
        return None

    async def end(self, request: CallRequest) -> tuple[Effect | None, str]:
        """Look after a call; gives what it did, and the difference where nobody else has it."""
        if request.tool.risk is Risk.WRITE:
            keeping = self._keeping.pop(request.call_id, None)
            if self._watch is not None:
                self._watch.wrote(begins=False)
            changes = () if keeping is None else tuple(keeping.changes)
            if keeping is None or not changes:
                return None, ""
            return await asyncio.to_thread(self._told, request, changes, keeping.trouble), ""
        if self._watch is None or request.tool.risk is not Risk.EXEC:
            return None, ""
        outlook = await self._watch.end(request.call_id)
        if not (outlook.total or outlook.note):
            return None, ""
        return await asyncio.to_thread(self._seen, request, outlook)

    async def close(self) -> None:
        """End what looks."""
        if self._watch is not None:
            await self._watch.close()

    def _seen(self, request: CallRequest, outlook: Outlook) -> tuple[Effect, str]:
        changes, trouble = [], outlook.note
        for seen in outlook.seen:
            change, why = self._change(seen)
            changes.append(change)
            trouble = trouble or why
        texts = [
            difference(seen.shown, seen.old or b"", seen.new or b"")
            for seen in outlook.seen[:MAX_DIFFS]
            if _has_text(seen)
        ]
        effect = self._told(
            request, tuple(changes), trouble, total=outlook.total, beside=outlook.beside
        )
        return effect, self._redact("".join(texts))

    def _change(self, seen: Seen) -> tuple[Change, str]:
        before, why = seen.before, ""
        if seen.old is not None:
            try:
                blob = self.desk.store.keep(seen.old) if self._keeps else ""
            except NotKept as error:
                blob, why = "", str(error)
            before = State(kind=before.kind, mode=before.mode, mark=before.mark, blob=blob)
        path = str(seen.path)
        return Change(path=path, shown=seen.shown, before=before, after=seen.after), why

    def _told(
        self,
        request: CallRequest,
        changes: tuple[Change, ...],
        note: str,
        *,
        total: int = 0,
        beside: int = 0,
    ) -> Effect:
        server = request.tool.server
        total = total or len(changes)
        lost = sum(not change.undoable for change in changes)
        if 0 < lost < len(changes) and not note:
            note = f"the former bytes of {lost} of them were not kept"
        broken = bool(total and not beside and server is not None and server.claims.read_only)
        if broken and server is not None and self._claims is not None:
            names = tuple(self._redact(change.shown) for change in changes[:5])
            self._claims.broke(server, names)
        record = ""
        if self._keeps and any(change.undoable for change in changes):
            try:
                record = self._record(request, changes, beside)
            except NotKept as error:
                note = note or str(error)
        return Effect(
            record=record,
            files=tuple(
                Touched(
                    path=self._redact(change.shown),
                    verb=change.verb,
                    undoable=bool(record) and change.undoable,
                )
                for change in changes[:MAX_TOLD]
            ),
            total=total,
            beside=beside,
            note=note if total == 0 or not note else f"cannot all be undone: {note}",
            claim_broken=broken,
            own=request.tool.risk is Risk.WRITE,
        )

    def _record(self, request: CallRequest, changes: tuple[Change, ...], beside: int) -> str:
        record = UndoRecord(
            id=new_id("u"),
            call_id=request.call_id,
            title=self._redact(_title(request)),
            at=time.time(),
            changes=changes,
            beside=beside,
        )
        self.desk.store.add(record)
        return record.id


def _holds_home(workspace: Path, environ: Mapping[str, str]) -> bool:
    """Say whether the home folder is in the workspace: every program changes files there."""
    home = environ.get("HOME", "")
    return bool(home) and Path(os.path.realpath(home)).is_relative_to(os.path.realpath(workspace))


def _has_text(seen: Seen) -> bool:
    """Say whether both sides of a change are known."""
    old = seen.before.kind is Kind.ABSENT or seen.old is not None
    new = seen.after.kind is Kind.ABSENT or seen.new is not None
    return old and new and seen.old != seen.new


def _title(request: CallRequest) -> str:
    names = (request.tool.subject.argument, *_TELLING)
    found = next((v for name in names if isinstance(v := request.arguments.get(name), str)), "")
    return clip(visible(f"{request.tool.name} {found}".rstrip(), single_line=True), _TITLE)
