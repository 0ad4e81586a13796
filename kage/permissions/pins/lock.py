"""``mcp.lock``: the definitions a project expects of its servers; it can only add friction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kage.core.definitions import canonical_form
from kage.core.files import reading, replace
from kage.core.pins import INSTRUCTIONS, PinnedDefinition
from kage.permissions.pins.file import MAX_BYTES, Known, Unreadable, definitions, stamp_of
from kage.permissions.protected import PROJECT_LOCK

NAME = PROJECT_LOCK
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """What the file says, by server; ``broken`` says why it could not be read."""

    servers: Mapping[str, Known] = field(default_factory=dict)
    broken: str = ""

    def speaks_of(self, server: str) -> bool:
        """Say whether it says anything about a server: a broken file speaks of all."""
        return bool(self.broken) or server in self.servers

    def wanted(self, server: str, name: str) -> PinnedDefinition | None:
        """Give the definition it wants, None when it lists none of that name."""
        return self.servers.get(server, {}).get(name)


class LockFile:
    """Gives what a lock file says now; it is read again when it is another.

    Args:
        path: The file; need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int, int] | None = None
        self._lock = Lock()

    def __call__(self) -> Lock:
        """Give what it says."""
        stamp = stamp_of(self.path)
        if stamp != self._stamp or stamp is None:
            self._stamp, self._lock = stamp, read(self.path)
        return self._lock


def read(path: Path) -> Lock:
    """Read a lock file; one that is not there says nothing."""
    try:
        with reading(path) as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Lock()
    except OSError as error:
        return Lock(broken=error.strerror or type(error).__name__)
    try:
        if len(raw) > MAX_BYTES:
            raise Unreadable(f"it is larger than {MAX_BYTES >> 20} MiB")
        return Lock(servers=_servers(json.loads(raw)))
    except Unreadable as error:
        return Lock(broken=str(error))
    except (ValueError, RecursionError) as error:
        return Lock(broken=f"it is no JSON: {error}")


def _servers(data: Any) -> dict[str, Known]:  # any JSON
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise Unreadable(f"it is not of version {VERSION}")
    servers = data.get("servers")
    if not isinstance(servers, dict):
        raise Unreadable("it has no servers")
    found: dict[str, Known] = {}
    for name, entry in servers.items():
        if not isinstance(entry, dict):
            raise Unreadable(f"{name!r} is no object")
        held = definitions(entry.get("tools"))
        said = entry.get("instructions")
        if said is not None:
            held |= definitions({INSTRUCTIONS: said})
        found[name] = held
    return found


def dumped(servers: Mapping[str, Iterable[PinnedDefinition]]) -> bytes:
    """Give the file for these definitions: sorted, so that a difference is a difference."""
    data: dict[str, Any] = {}
    for name, known in servers.items():
        entry: dict[str, Any] = {"tools": {}}
        for one in known:
            row = {"digest": one.digest, "definition": json.loads(canonical_form(one.written))}
            if one.name == INSTRUCTIONS:
                entry["instructions"] = row
            else:
                entry["tools"][one.name] = row
        data[name] = entry
    whole = {"version": VERSION, "servers": data}
    text = json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=True)
    return text.encode() + b"\n"


def write(path: Path, servers: Mapping[str, Iterable[PinnedDefinition]]) -> None:
    """Replace the lock file.

    Raises:
        OSError: it cannot be written.
    """
    replace(path, dumped(servers), mode=0o644)
