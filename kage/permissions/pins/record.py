"""What the decision log says about definitions: which digest counts, since when, and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kage.config.trustfile import key_of

KIND = "pin"  # of the log's records


class Act(StrEnum):
    """What was recorded of a definition."""

    SEEN = "seen"  # offered to a model for the first time
    WARNED = "warned"  # it changed, and the person only wants to hear of that
    ACCEPTED = "accepted"
    REFUSED = "refused"
    DISABLED = "disabled"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """What counts about one definition."""

    digest: str = ""  # "" while none counts
    since: str = ""  # ISO date and time it began to count
    lock: str = ""  # the digest of mcp.lock it was accepted against
    refused: str = ""  # the digest the person did not want
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Acted:
    """One act about one definition."""

    name: str
    act: Act
    digest: str
    since: str
    lock: str = ""


Stands = dict[str, dict[str, Stand]]  # by the server's key, then the definition's name


def folded(records: Iterable[Mapping[str, Any]]) -> Stands:
    """Go through the log, oldest first; a record that is not whole says nothing."""
    stands: Stands = {}
    for record in records:
        tools, lock = record.get("tools"), record.get("lock")
        key, act = record.get("key"), record.get("act")
        if not (isinstance(tools, dict) and isinstance(key, str) and act in tuple(Act)):
            continue
        locks = lock if isinstance(lock, dict) else {}
        for name, digest in tools.items():
            if isinstance(digest, str):
                against = str(locks.get(name, ""))
                since = str(record.get("time", ""))
                act_on(stands, key, Acted(name, Act(act), digest, since, against))
    return stands


def act_on(stands: Stands, key: str, acted: Acted) -> None:
    """Put one act in force."""
    mine = stands.setdefault(key, {})
    stand = mine.get(acted.name, Stand())
    match acted.act:
        case Act.SEEN | Act.WARNED | Act.ACCEPTED:
            since = stand.since if stand.digest == acted.digest else acted.since
            lock = acted.lock if acted.act is Act.ACCEPTED else ""
            mine[acted.name] = Stand(digest=acted.digest, since=since, lock=lock)
        case Act.REFUSED:
            mine[acted.name] = dataclasses.replace(stand, refused=acted.digest)
        case Act.DISABLED:
            mine[acted.name] = dataclasses.replace(stand, disabled=True)
        case Act.FORGOTTEN:
            mine.pop(acted.name, None)


def owner(server: str, origin: str) -> str:
    """Give the key of one server of one origin."""
    return key_of(server, origin)
