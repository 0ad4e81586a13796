"""What is kept of one sign-in: the tokens, who issued them, and the client they belong to."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

VERSION = 1
EARLY = 60.0  # seconds before its end a token is renewed
MAX_EXPIRES = 10 * 365 * 86_400  # seconds; more is a mistake or a joke


class BadRecord(ValueError):
    """What was kept cannot be read; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """Whose sign-in it is: the same name in another place, or at another address, is another."""

    server: str
    origin: str
    url: str

    @property
    def digest(self) -> str:
        """The name its record is kept under."""
        text = json.dumps([self.server, self.origin, self.url])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One sign-in; the client is kept longer than its tokens."""

    server: str
    origin: str
    url: str
    issuer: str = ""  # who issued tokens and client; they go to nobody else
    token_endpoint: str = ""
    revocation_endpoint: str = ""
    resource: str = ""  # the resource indicator the tokens are for, "" = none was sent
    client: Mapping[str, Any] = field(default_factory=dict)  # RFC 7591 fields
    access_token: str = ""
    refresh_token: str = ""
    scope: str = ""  # granted, separated by spaces
    expires_at: float = 0.0  # seconds since the epoch; 0 = the server did not say

    @property
    def key(self) -> Key:
        """Whose it is."""
        return Key(server=self.server, origin=self.origin, url=self.url)

    def due(self, now: float | None = None) -> bool:
        """Say whether its token ends soon, or has ended."""
        return self._passed(EARLY, now)

    def over(self, now: float | None = None) -> bool:
        """Say whether its token has ended."""
        return self._passed(0.0, now)

    def _passed(self, early: float, now: float | None) -> bool:
        moment = time.time() if now is None else now
        return bool(self.expires_at) and moment + early >= self.expires_at

    def secrets(self) -> tuple[tuple[str, str], ...]:
        """Give what must not be shown, each with a name for it."""
        found = (
            (f"{self.server} access token", self.access_token),
            (f"{self.server} refresh token", self.refresh_token),
            (f"{self.server} client secret", str(self.client.get("client_secret") or "")),
        )
        return tuple((name, value) for name, value in found if value)


def expiry(expires_in: object) -> float:
    """Give the moment a token ends, 0 when the server named none that makes sense."""
    if isinstance(expires_in, bool) or not isinstance(expires_in, int | float | str):
        return 0.0
    try:
        seconds = float(expires_in)
    except ValueError:
        return 0.0
    return time.time() + seconds if 0 < seconds <= MAX_EXPIRES else 0.0


def dump(record: Record) -> str:
    """Write a record as JSON."""
    return json.dumps({"version": VERSION, **asdict(record)}, indent=1)


def parse(text: str, key: Key) -> Record:
    """Read a record back.

    Raises:
        BadRecord: it is half written, of another version, or not this server's.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise BadRecord("it is not whole") from None
    if not isinstance(data, dict):
        raise BadRecord("it holds something else")
    version = data.pop("version", None)
    if version != VERSION:
        raise BadRecord(f"it is of version {version!r}, this kage knows {VERSION}")
    names = {item.name for item in fields(Record)}
    if set(data) - names:
        raise BadRecord("it has keys this kage does not know")
    for name, value in data.items():
        wanted = {"client": dict, "expires_at": (int, float)}.get(name, str)
        if isinstance(value, bool) or not isinstance(value, wanted):  # type: ignore[arg-type]  # a type or a tuple of types
            raise BadRecord(f"its {name} is of a wrong kind")
    try:
        record = Record(**data)
    except TypeError:
        raise BadRecord("it lacks a key") from None
    if record.key != key:
        raise BadRecord("it belongs to another server")
    return record
