"""What the person trusts, and what is held: ``trust.toml``, proven by the decision log.

The log says what was decided, the file what was seen then. A record of the file that no decision
made counts for nothing; a hold that the log knows stands, whatever the file says, until the log
knows its release.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from kage.config.keeping import keep_copy, listed, locked, read_whole, write_whole
from kage.config.loosening import NAME as RULES
from kage.config.loosening import Loosening
from kage.config.schema import ServerSpec
from kage.config.seen import seen, written_hash
from kage.config.trustfile import Record, key_of, masked, named, parsed
from kage.core.trust import Identity, Standing

KIND = "trust"  # of the log's records
_LISTS = ("entry", "held")
Rows = list[Any]  # tables of the file


class TrustLog(Protocol):
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


@dataclass(slots=True)
class _Known:
    """What file and log say together."""

    trusted: dict[str, Record] = field(default_factory=dict)  # by key
    never: set[str] = field(default_factory=set)  # keys
    held: dict[str, Record] = field(default_factory=dict)  # by hash
    allowed: set[str] = field(default_factory=set)  # hashes of what the person's own verbs wrote


class TrustBook:
    """Says what may start; every answer of a person is logged first and then kept.

    Safe to use from several threads, and beside other kages.

    Args:
        path: ``trust.toml``; need not exist.
        log: Proves the records.
        on_notice: Told in words what was dropped or could not be kept.
    """

    def __init__(
        self, path: Path, *, log: TrustLog, on_notice: Callable[[str], None] | None = None
    ) -> None:
        self.path = path
        self._log = log
        self._on_notice = on_notice
        self._unheard: list[str] = []  # said before anybody listened
        self._known: _Known | None = None
        self._stamp: tuple[int, int, int] | None = None
        self._said: set[str] = set()
        self._session: set[tuple[str, str]] = set()  # key and hash: trusted, could not be kept
        self._base: set[str] = set()  # what stood when this kage started, or was allowed since
        self._alone = threading.RLock()

    def listen(self, on_notice: Callable[[str], None]) -> None:
        """Tell ``on_notice`` what was said so far, and from now on."""
        self._on_notice = on_notice
        unheard, self._unheard = self._unheard, []
        for text in unheard:
            on_notice(text)

    # ---- questions

    def standing(self, identity: Identity) -> Standing:
        """Say how an entry stands; for the person's own only a hold counts against it."""
        known = self._now()
        key = key_of(identity.name, identity.origin)
        if (key, identity.entry_hash) in self._session:
            return Standing.TRUSTED
        if identity.origin == "user":
            return Standing.HELD if identity.entry_hash in known.held else Standing.TRUSTED
        if key in known.never:
            return Standing.NEVER
        record = known.trusted.get(key)
        if record is None:
            return Standing.NEW
        return Standing.TRUSTED if record.hash == identity.entry_hash else Standing.CHANGED

    def before(self, identity: Identity) -> Mapping[str, str]:
        """Give what was seen of the form that counted before, {} when nothing is known."""
        known = self._now()
        if identity.origin == "user":
            held = known.held.get(identity.entry_hash)
            return held.before if held is not None else {}
        record = known.trusted.get(key_of(identity.name, identity.origin))
        return record.seen if record is not None else {}

    def trusted(self) -> tuple[Record, ...]:
        """Give everything that is trusted, oldest first."""
        return tuple(self._now().trusted.values())

    def held(self) -> tuple[Record, ...]:
        """Give everything that is held."""
        return tuple(self._now().held.values())

    def refused(self, name: str, origin: str) -> bool:
        """Say whether the person wants no form of this entry."""
        return key_of(name, origin) in self._now().never

    # ---- answers

    def trust(self, identity: Identity) -> bool:
        """Let the entry start as it is from now on; whether that could be kept for good."""
        if identity.origin == "user":
            return self._free(Record.of(identity), "released")
        record = Record.of(identity)
        kept = self._decide("trusted", record) and self._edit(
            entry=lambda rows: [*_others(rows, record), record.row()]
        )
        if not kept:
            self._session.add((record.key, record.hash))
        return kept

    def never(self, identity: Identity) -> bool:
        """Let no form of the entry start, nor ask again; whether that could be kept for good."""
        record = Record.of(identity)
        self._session.discard((record.key, record.hash))
        return self._decide("never", record) and self._edit(
            entry=lambda rows: _others(rows, record)
        )

    def revoke(self, name: str, origin: str) -> bool:
        """Take an answer back, trust or never; whether there was one and that could be kept."""
        record = Record.of(Identity(name=name, origin=origin, entry_hash=""))
        known = self._now()
        mine = {held for held in self._session if held[0] == record.key}
        self._session -= mine
        if record.key not in known.trusted and record.key not in known.never:
            return bool(mine)
        return self._decide("revoked", record) and self._edit(
            entry=lambda rows: _others(rows, record)
        )

    def record_change(self, spec: ServerSpec) -> bool:
        """Note that the person changed an entry of their own with one of kage's verbs."""
        found = Identity(name=spec.name, origin=spec.origin, entry_hash=written_hash(spec))
        return self._free(Record.of(found), "changed")

    # ---- changes seen while kage runs

    def accept(self, specs: Iterable[ServerSpec]) -> None:
        """Take the entries a kage starts with as given; holds from before stand."""
        with self._alone:
            self._base |= {written_hash(spec) for spec in specs if not spec.disabled}

    def review(
        self, specs: Iterable[ServerSpec], before: Iterable[ServerSpec] = ()
    ) -> tuple[Record, ...]:
        """Hold what is new or different in the person's own files; gives what was held now.

        Args:
            specs: The entries as they are written now.
            before: The entries of the same names as they were, for the difference.
        """
        old = {spec.name: spec for spec in before if spec.origin == "user"}
        found: list[Record] = []
        with self._alone:
            known = self._now(anew=True)
            for spec in specs:
                what = written_hash(spec)
                if spec.origin != "user" or spec.disabled or what in self._base:
                    continue
                if what in known.allowed:
                    self._base.add(what)
                elif what not in known.held:
                    found.append(self._hold(spec, what, old.get(spec.name)))
        return tuple(found)

    def review_rules(self, pieces: Iterable[Loosening]) -> tuple[Loosening, ...]:
        """Hold what the person's own rules let through and did not before; gives what is new."""
        with self._alone:
            known = self._now(anew=True)
            new = [
                piece
                for piece in pieces
                if piece.hash not in known.allowed and piece.hash not in known.held
            ]
            for piece in new:
                self._keep_held(_of_rule(piece))
        return tuple(new)

    def held_rules(self) -> tuple[Loosening, ...]:
        """Give the pieces of the rules that are held; what cannot be read asks for everything."""
        records = [record for record in self.held() if record.detail]
        every = Loosening(clause="mode", value="default", before="ask")
        return tuple(Loosening.decode(record.detail) or every for record in records)

    def allow_rules(self, pieces: Iterable[Loosening], *, verb: bool = False) -> bool:
        """Let pieces count: after a question, or because one of kage's verbs wrote them."""
        act = "changed" if verb else "released"
        return all([self._free(_of_rule(piece), act) for piece in pieces])

    def _hold(self, spec: ServerSpec, what: str, old: ServerSpec | None) -> Record:
        found = Identity(
            name=spec.name, origin=spec.origin, entry_hash=what, seen=masked(seen(spec))
        )
        before = masked(seen(old)) if old is not None else {}
        return self._keep_held(dataclasses.replace(Record.of(found), before=before))

    def _keep_held(self, record: Record) -> Record:
        self._decide("held", record)
        self._edit(held=lambda rows: [*rows, record.row()])
        self._now().held.setdefault(record.hash, record)  # here even when the disk is full
        return record

    def _free(self, record: Record, act: str) -> bool:
        with self._alone:
            held = record.hash in self._now(anew=True).held
            kept = self._decide(act, record)
            if held and kept:
                kept = self._edit(held=lambda rows: [r for r in rows if r["hash"] != record.hash])
            if not kept:
                self._session.add((record.key, record.hash))
            self._base.add(record.hash)
        return kept

    # ---- file and log

    def _decide(self, act: str, record: Record) -> bool:
        fields = {
            "id": record.decision,
            "act": act,
            "who": "kage" if act == "held" else "person",
            "server": record.name,
            "origin": record.origin,
            "key": record.key,
            "entry_hash": record.hash,
            "record": record.identity,
            **({"detail": record.detail} if record.detail else {}),
        }
        if self._log.append(KIND, fields, sync=True):
            return True
        self._notice("The decision log cannot be written; your answer counts for this session")
        return False

    def _edit(
        self,
        *,
        entry: Callable[[Rows], Rows] | None = None,
        held: Callable[[Rows], Rows] | None = None,
    ) -> bool:
        """Change the file under its lock; what other kages wrote meanwhile stays."""
        try:
            with self._alone, locked(self.path):
                lists, dropped = read_whole(self.path, _LISTS)
                sound = {name: [r for r in rows if parsed(r)] for name, rows in lists.items()}
                if dropped or sound != lists:
                    said = listed(dropped or ["what kage cannot read"])
                    self._notice(f"{self.path}: left out {said}; {keep_copy(self.path)}")
                for name, edit in (("entry", entry), ("held", held)):
                    sound[name] = edit(sound[name]) if edit is not None else sound[name]
                write_whole(self.path, {name: rows for name, rows in sound.items() if rows})
        except OSError as error:
            why = error.strerror or type(error).__name__
            self._notice(f"{self.path} cannot be written ({why}); it counts for this session")
            return False
        self._now(anew=True)
        return True

    def _now(self, *, anew: bool = False) -> _Known:
        """Give what counts; read again when the file is another."""
        with self._alone:
            stamp = _stamp(self.path)
            if self._known is None or anew or stamp != self._stamp:
                self._stamp = stamp
                self._known = self._read()
            return self._known

    def _read(self) -> _Known:
        lists, dropped = read_whole(self.path, _LISTS)
        unproven = False
        latest: dict[str, Mapping[str, Any]] = {}
        known = _Known()
        try:
            latest, known = _folded(self._log.every(KIND))
        except OSError as error:
            unproven = True
            dropped.append(f"all trust: the decision log cannot be read ({error.strerror})")
        for row in lists["entry"]:
            record = parsed(row)
            made = latest.get(record.key) if record is not None else None
            if record is not None and made is not None and _made(made, record):
                known.trusted[record.key] = record
            elif not unproven:
                dropped.append(f"{named(row)}: no decision of yours made it")
        for row in lists["held"]:
            record = parsed(row)
            if record is not None and (unproven or record.hash in known.held):
                known.held[record.hash] = record
            else:
                dropped.append(f"{named(row)}: nothing of it is held")
        if dropped:
            self._notice(f"{self.path}: left out {listed(dropped)}", once=True)
        return known

    def _notice(self, text: str, *, once: bool = False) -> None:
        if once and text in self._said:
            return
        self._said.add(text)
        if self._on_notice is not None:
            self._on_notice(text)
        else:
            self._unheard.append(text)


def _folded(acts: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Mapping[str, Any]], _Known]:
    """Go through the log: the last answer for each entry, what is held, what verbs wrote."""
    latest: dict[str, Mapping[str, Any]] = {}
    known = _Known()
    for act in acts:
        key, what = str(act.get("key", "")), str(act.get("entry_hash", ""))
        match act.get("act"):
            case "trusted" | "never" | "revoked" as answer:
                latest[key] = act
                known.never.discard(key)
                if answer == "never":
                    known.never.add(key)
            case "held":
                name, origin = str(act.get("server", "")), str(act.get("origin", ""))
                detail = str(act.get("detail", ""))
                known.held[what] = Record(name=name, origin=origin, hash=what, detail=detail)
                known.allowed.discard(what)
            case "released" | "changed":
                known.held.pop(what, None)
                known.allowed.add(what)
    return latest, known


def _made(act: Mapping[str, Any], record: Record) -> bool:
    return (
        act.get("act") == "trusted"
        and act.get("id") == record.decision
        and act.get("record") == record.identity
    )


def _others(rows: Rows, record: Record) -> Rows:
    return [row for row in rows if key_of(row["name"], row.get("origin", "")) != record.key]


def _of_rule(piece: Loosening) -> Record:
    found = Identity(name=RULES, origin="user", entry_hash=piece.hash, seen={"rule": piece.words})
    return dataclasses.replace(Record.of(found), detail=piece.encode())


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
