"""One record of ``trust.toml``, trusted or held, as it stands in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kage.config.seen import safe
from kage.core.canonical import digest
from kage.core.ids import new_id
from kage.core.trust import Identity

_TEXTS = ("name", "origin", "hash", "decision", "since", "detail")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One entry of ``trust.toml``: trusted, or held; with what was seen of it."""

    name: str
    origin: str
    hash: str  # of a trusted one the entry hash, of a held one the digest of what is written
    decision: str = ""  # id of the record in the decision log
    since: str = ""  # ISO date and time
    seen: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)  # of a held one: what it was
    detail: str = ""  # of a held rule: the piece itself

    @classmethod
    def of(cls, identity: Identity) -> Record:
        """Make one for a decision about ``identity`` that is taken now."""
        moment = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return cls(
            name=safe(identity.name),
            origin=safe(identity.origin),
            hash=identity.entry_hash,
            decision=new_id("d"),
            since=moment,
            seen={safe(part): safe(value) for part, value in identity.seen.items()},
        )

    @property
    def key(self) -> str:
        """Whose it is: a digest of name and origin."""
        return key_of(self.name, self.origin)

    @property
    def identity(self) -> str:
        """The digest the decision log keeps of it."""
        return digest(
            {"name": self.name, "origin": self.origin, "hash": self.hash, "seen": dict(self.seen)}
        )

    def row(self) -> dict[str, Any]:
        """Give it as TOML holds it."""
        texts = {
            "name": self.name,
            "origin": self.origin,
            "hash": self.hash,
            "decision": self.decision,
            "since": self.since,
            "detail": self.detail,
        }
        tables = {"seen": dict(self.seen), "before": dict(self.before)}
        return {name: value for name, value in {**texts, **tables}.items() if value}


def key_of(name: str, origin: str) -> str:
    """Give the digest that stands for one server of one origin."""
    return digest({"name": safe(name), "origin": safe(origin)})


def parsed(row: object) -> Record | None:
    """Read one table of the file; None when it is no record."""
    if not isinstance(row, dict):
        return None
    texts = {name: row.get(name, "") for name in _TEXTS}
    tables = {name: row.get(name, {}) for name in ("seen", "before")}
    unknown = set(row) - set(texts) - set(tables)
    if unknown or not all(isinstance(text, str) for text in texts.values()):
        return None
    for table in tables.values():
        if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
            return None
    if not (texts["name"] and texts["hash"] and texts["decision"]):
        return None
    return Record(**texts, **tables)


def named(row: object) -> str:
    """Give the name in a table that may be no record."""
    name = row.get("name") if isinstance(row, dict) else None
    return name if isinstance(name, str) else "an entry"


def masked(parts: Mapping[str, str]) -> dict[str, str]:
    """Keep no literal value of the person's own variables and headers: it may be a secret."""
    return {
        name: f"(hidden, {digest({'value': value})[:12]})"
        if name.startswith(("env ", "header ", "oauth ")) and "${" not in value
        else value
        for name, value in parts.items()
    }
