"""Pins: compares what a server offers with what the person knows, and holds what is another.

The decision log says which digest of a definition counts; the files in ``pins`` only keep what it
looked like. What a file alone knows can hold a definition, never let one pass.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from kage.core.pins import HeldChange, Offered, PinAnswer, PinnedDefinition, Verdict
from kage.core.tools import ToolSpec
from kage.permissions.pins.compare import Comparing
from kage.permissions.pins.lock import Lock
from kage.permissions.pins.record import KIND, Act, Acted, Stand, Stands, act_on, folded, owner
from kage.permissions.pins.store import PinStore

_ACTS = {
    PinAnswer.ACCEPT: Act.ACCEPTED,
    PinAnswer.REFUSE: Act.REFUSED,
    PinAnswer.DISABLE: Act.DISABLED,
}
_AT_ONCE = 500  # definitions in one record of the log


class PinLog(Protocol):
    """What is needed of ``permissions.log.DecisionLog``."""

    def append(self, kind: str, fields: Mapping[str, Any], *, sync: bool = False) -> bool:
        """Append one record; whether it stands on disk."""
        ...

    def every(self, kind: str) -> list[Mapping[str, Any]]:
        """Give the records of one kind, oldest first.

        Raises:
            OSError: the log cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PinRow:
    """One definition that is known, for a list."""

    server: str
    origin: str
    name: str
    stand: Stand


class PinBook:
    """Knows every definition; safe to use from several threads, and beside other kages.

    Args:
        folder: Of the files; need not exist.
        log: Says what counts.
        records: Whether what is seen for the first time counts as known from now on: in a kage
            that talks to a model.
        lock: Gives what ``mcp.lock`` says now.
        redact: Takes secrets out of what is written.
    """

    def __init__(
        self,
        folder: Path,
        *,
        log: PinLog,
        records: bool,
        lock: Callable[[], Lock] = Lock,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._log = log
        self._records = records
        self._lock = lock
        self._redact = redact
        self._store = PinStore(folder, redact)
        self._stands: Stands | None = None
        self._owners: dict[str, tuple[str, str]] = {}  # server and origin by key
        self._unkept: list[tuple[str, Acted]] = []  # what the log could not take, by key
        self._first: set[tuple[str, str]] = set()  # met in this process
        self._offers: dict[str, Offered] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._alone = threading.RLock()

    def listen(self, on_notice: Callable[[str], None]) -> None:
        """Tell ``on_notice`` what could not be read or written, so far and from now on."""
        self._store.listen(on_notice)

    # ---- questions

    def review(self, offered: Offered) -> Verdict:
        """Compare what a server offers with what is known, and note what is new.

        Raises nothing for files that are broken or a log that cannot be read: what is only known
        from there is missing then, and what differs from the rest is held all the same.
        """
        key = owner(offered.server, offered.origin)
        with self._alone:
            comparing = self._comparing(offered, key)
            verdict = comparing.verdict()
            if self._records:
                self._note(offered, Act.WARNED, comparing.changed)
                self._note(offered, Act.SEEN, comparing.first)
                self._first |= {(key, self._redact(one.name)) for one in comparing.first}
            self._offers[key], self._verdicts[key] = offered, verdict
        return verdict

    def held(self, tool: ToolSpec) -> str | None:
        """Say why a tool is held, None when it is not."""
        if tool.server is None:
            return None
        key = owner(tool.server.server, tool.server.origin)
        change = self._verdicts.get(key, Verdict()).held.get(tool.server.original)
        return f"{tool.name} is held: {change.why}" if change is not None else None

    def since(self, tool: ToolSpec) -> str:
        """Give when this definition was first seen, "" when that is now."""
        if tool.server is None or self._stands is None:
            return ""
        key = owner(tool.server.server, tool.server.origin)
        name = self._redact(tool.server.original)
        stand = self._stands.get(key, {}).get(name, Stand())
        known = stand.digest == tool.server.pin and (key, name) not in self._first
        return stand.since if known else ""

    def offered(self) -> tuple[Offered, ...]:
        """Give what was reviewed last of each server."""
        return tuple(self._offers.values())

    def known(self) -> tuple[PinRow, ...]:
        """Give everything that is known, by server."""
        with self._alone:
            rows = [
                PinRow(server=server, origin=origin, name=name, stand=stand)
                for key, mine in self._now().items()
                for server, origin in [self._owners.get(key, ("", ""))]
                for name, stand in mine.items()
            ]
        return tuple(sorted(rows, key=lambda row: (row.server, row.origin, row.name)))

    # ---- answers

    def answer(self, change: HeldChange, answer: PinAnswer) -> bool:
        """Take an answer; False when the definition is no longer the one that was shown."""
        if answer is PinAnswer.LATER:
            return True
        with self._alone:
            offered = self._offers.get(owner(change.server, change.origin))
            every = offered.definitions if offered is not None else ()
            found = [one for one in every if (one.name, one.digest) == (change.name, change.digest)]
            if offered is None or not found:
                return False
            self._note(offered, _ACTS[answer], found, against=change.lock)
        return True

    def forget(self, rows: Iterable[PinRow]) -> None:
        """Know nothing of these definitions any more: their next use is their first."""
        with self._alone:
            for row in rows:
                offered = Offered(
                    server=row.server,
                    origin=row.origin,
                    mode="ask",
                    definitions=(),
                    wanted=frozenset(),
                )
                gone = PinnedDefinition(name=row.name, digest=row.stand.digest, written={})
                self._note(offered, Act.FORGOTTEN, [gone])

    # ---- inside

    def _comparing(self, offered: Offered, key: str) -> Comparing:
        stands = self._now(offered)
        return Comparing(
            offered,
            stands=dict(stands.get(key, {})),
            filed=lambda: self._store.read(offered.server, offered.origin),
            lock=self._lock() if offered.mode != "off" else Lock(),
            label=self._redact,
        )

    def _note(
        self,
        offered: Offered,
        act: Act,
        definitions: Iterable[PinnedDefinition],
        *,
        against: str = "",
    ) -> None:
        """Record one act about definitions of one server, then keep what they look like."""
        every = list(definitions)
        for start in range(0, len(every), _AT_ONCE):
            part = {self._redact(one.name): one for one in every[start : start + _AT_ONCE]}
            self._put(offered, act, part, against)

    def _put(
        self, offered: Offered, act: Act, part: Mapping[str, PinnedDefinition], against: str
    ) -> None:
        stands = self._now(offered)
        key = owner(offered.server, offered.origin)
        since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        acts = [(key, Acted(name, act, one.digest, since, against)) for name, one in part.items()]
        fields = {
            "act": str(act),
            "who": "kage" if act in (Act.SEEN, Act.WARNED) else "person",
            "server": offered.server,
            "origin": offered.origin,
            "key": key,
            "tools": {name: one.digest for name, one in part.items()},
            **({"lock": dict.fromkeys(part, against)} if against else {}),
        }
        for whose, acted in acts:
            act_on(stands, whose, acted)
        self._owners[key] = (offered.server, offered.origin)
        if not self._store.keep(
            offered.server,
            offered.origin,
            act,
            part,
            since=since,
            record=lambda decision: self._log.append(
                KIND, {"id": decision, **fields}, sync=fields["who"] == "person"
            ),
        ):
            self._unkept += acts

    def _now(self, about: Offered | None = None) -> Stands:
        """Give what counts; read again when another kage or a verb wrote about this server."""
        changed = about is not None and self._store.changed(about.server, about.origin)
        if self._stands is None or changed:
            self._store.look()
            try:
                records = self._log.every(KIND)
            except OSError as error:
                records = []
                why = error.strerror or type(error).__name__
                self._store.notice(
                    f"The decision log cannot be read ({why}), so it is not known "
                    "which definitions of tools you know"
                )
            self._stands = folded(records)
            for record in records:
                found = (str(record.get("server", "")), str(record.get("origin", "")))
                self._owners[str(record.get("key", ""))] = found
            for whose, acted in self._unkept:
                act_on(self._stands, whose, acted)
        return self._stands
