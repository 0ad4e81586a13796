"""What the person allowed for good: grants of this session, and saved ones in ``grants.toml``.

A grant is bound to what was seen when it was given: the server's identity, what starts it, the
definition of the tool. A grant for a file or a shell line is bound to the workspace, since the
same words mean another thing in another project.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kage.config.keeping import keep_copy, listed, locked, read_whole, write_whole
from kage.core.canonical import digest
from kage.core.errors import UsageError
from kage.core.tools import SubjectKind, ToolSpec
from kage.permissions.decisions.log import DecisionLog
from kage.permissions.rules.reading import Reading
from kage.permissions.rules.rule import Rule, parse_rule

_BOUND = (SubjectKind.COMMAND, SubjectKind.PATH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One standing permission."""

    rule: Rule
    server: str = ""  # "" for a tool of kage
    origin: str = ""
    entry_hash: str = ""
    pin: str = ""
    workspace: str = ""  # for files and shell lines
    exact: str = ""  # digest of what it covers, when it covers one exact call
    decision: str = ""  # id of the decision that made it
    since: str = ""  # ISO date and time

    @property
    def identity(self) -> str:
        """The digest the decision log keeps of it; a grant nobody gave has no such record."""
        return digest({**_plain(self), "decision": "", "since": ""})

    @classmethod
    def of(cls, rule: Rule, reading: Reading, *, exact: bool, decision: str) -> Grant:
        """Bind ``rule`` to what is known about the call it was offered for."""
        server = reading.tool.server
        return cls(
            rule=rule,
            server=server.server if server else "",
            origin=server.origin if server else "",
            entry_hash=server.entry_hash if server else "",
            pin=server.pin if server else "",
            workspace=str(reading.workspace) if reading.kind in _BOUND else "",
            exact=exact_digest(reading) if exact else "",
            decision=decision,
            since=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        )

    def about(self, tool: ToolSpec) -> bool:
        """Say whether it was given for this tool of this very server."""
        server = tool.server
        if server is None:
            return not self.server and self.rule.tool == tool.name
        if (self.server, self.origin) != (server.server, server.origin):
            return False
        return self.rule.names(tool, (), strictly=True)

    def void(self, tool: ToolSpec) -> str:
        """Say why it no longer counts, "" while it does."""
        server = tool.server
        if server is None:
            return ""
        if self.entry_hash != server.entry_hash:
            return f"the server {server.server} is started differently since you allowed it"
        if self.pin != server.pin:
            return f"{tool.name} has changed its definition since you allowed it"
        return ""

    def covers(self, reading: Reading) -> bool:
        """Say whether the call is one the person granted."""
        if self.workspace and self.workspace != str(reading.workspace):
            return False
        if self.exact:
            return self.exact == exact_digest(reading)
        return bool(reading.covering([self.rule.pattern]))


def exact_digest(reading: Reading) -> str:
    """Give the digest that stands for one exact call: the shell line, or all arguments."""
    if reading.kind is SubjectKind.COMMAND:
        return digest({"line": reading.text})
    return digest(reading.arguments)


class Grants:
    """The grants that count now."""

    def __init__(
        self,
        path: Path,
        *,
        log: DecisionLog,
        on_notice: Callable[[str], None] | None = None,
    ) -> None:
        """Read nothing yet; saved grants are read with the first look.

        Args:
            path: ``grants.toml``; need not exist.
            log: Knows which saved grants a person really gave.
            on_notice: Told in words what was dropped.
        """
        self.path = path
        self._log = log
        self._on_notice = on_notice
        self._session: dict[str, list[Grant]] = {}
        self._saved: list[Grant] | None = None

    def load(self) -> None:
        """Read the saved grants now, so that what was dropped is told at the start."""
        _ = self.saved

    @property
    def saved(self) -> tuple[Grant, ...]:
        """The saved grants that count."""
        if self._saved is None:
            grants, dropped = _read(self.path)
            self._saved = self._proven(grants, dropped)
            if dropped:
                self._notice(f"{self.path}: left out {listed(dropped)}")
        return tuple(self._saved)

    def of_session(self, session_id: str) -> tuple[Grant, ...]:
        """The grants given for one session."""
        return tuple(self._session.get(session_id, ()))

    def find(self, reading: Reading, session_id: str) -> tuple[Grant | None, str]:
        """Give the grant that covers the call, or why one that did no longer counts."""
        void = ""
        found: list[Grant] = []
        for grant in (*self._session.get(session_id, ()), *self.saved):
            if not grant.about(reading.tool) or not grant.covers(reading):
                continue
            reason = grant.void(reading.tool)
            if reason:
                void = reason
            else:
                found.append(grant)
        best = max(found, key=lambda grant: grant.rule.rank, default=None)
        return best, "" if best else void

    def since(self, tool: ToolSpec) -> str:
        """Give the day this definition was first allowed, "" when it never was."""
        days = [
            grant.since[:10]
            for given in (*self._session.values(), self.saved)
            for grant in given
            if tool.server is not None and grant.about(tool) and not grant.void(tool)
        ]
        return min(days, default="")

    def add(self, grant: Grant, session_id: str) -> None:
        """Let ``grant`` count for one session."""
        given = self._session.setdefault(session_id, [])
        if all(grant.identity != other.identity for other in given):
            given.append(grant)

    def save(self, grant: Grant) -> bool:
        """Let ``grant`` count for good; whether it could be written.

        Its decision must stand in the log before. What other kages saved meanwhile is kept; a file
        that cannot be read in full is copied beside itself first.
        """
        self.load()
        try:
            with locked(self.path):
                grants, dropped = _read(self.path)
                if dropped:
                    self._notice(f"{self.path}: left out {listed(dropped)}; {keep_copy(self.path)}")
                known = {other.identity for other in grants}
                if grant.identity not in known:
                    _write(self.path, [*grants, grant])
        except OSError as error:
            why = error.strerror or type(error).__name__
            self._notice(f"{self.path} cannot be written ({why}); the grant is for this session")
            return False
        if self._saved is not None:
            self._saved.append(grant)
        return True

    def _proven(self, grants: list[Grant], dropped: list[str]) -> list[Grant]:
        """Keep the grants whose decision the log knows; an edited file grants nothing."""
        wanted = {grant.decision: grant.since[:7] for grant in grants}
        try:
            records = self._log.find(wanted) if wanted else {}
        except OSError as error:
            dropped.append(f"all grants: the decision log cannot be read ({error.strerror})")
            return []
        kept: list[Grant] = []
        for grant in grants:
            record = records.get(grant.decision)
            if record is not None and _made(record, grant):
                kept.append(grant)
            else:
                dropped.append(f"{grant.rule}: no decision of yours made it")
        return kept

    def _notice(self, text: str) -> None:
        if self._on_notice is not None:
            self._on_notice(text)


def _made(record: Mapping[str, Any], grant: Grant) -> bool:
    return (
        record.get("verdict") == "allow"
        and record.get("scope") == "always"
        and record.get("grant") == grant.identity
    )


# -- the file ------------------------------------------------------------------------------------


def _plain(grant: Grant) -> dict[str, str]:
    return {**asdict(grant), "rule": str(grant.rule)}


def _read(path: Path) -> tuple[list[Grant], list[str]]:
    """Give the grants of the file and what had to be left out."""
    lists, dropped = read_whole(path, ("grant",))
    grants: list[Grant] = []
    for number, entry in enumerate(lists["grant"], 1):
        try:
            grants.append(_grant(entry))
        except (UsageError, ValueError) as error:
            dropped.append(f"grant {number} ({error})")
    return grants, dropped


def _grant(entry: object) -> Grant:
    if not isinstance(entry, dict):
        raise ValueError("no table")
    names = {field.name for field in fields(Grant)}
    unknown = [name for name in entry if name not in names]
    if unknown:
        raise ValueError(f"unknown key {unknown[0]}")
    if not all(isinstance(value, str) for value in entry.values()):
        raise ValueError("a value is no text")
    if not entry.get("rule") or not entry.get("decision"):
        raise ValueError("rule or decision is missing")
    return Grant(**{**entry, "rule": parse_rule(entry["rule"])})


def _write(path: Path, grants: list[Grant]) -> None:
    tables = [{name: value for name, value in _plain(grant).items() if value} for grant in grants]
    write_whole(path, {"grant": tables})
