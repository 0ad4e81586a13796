"""Where sign-ins are kept: a private file each, or the system's keyring.

A file is replaced whole; whoever changes one holds its lock, so that two kages renew a token once.
What cannot be read is said and kept aside, and counts as no sign-in.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import importlib
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from kage.core.files import content, reading, replace
from kage.core.redact import Redactor
from kage.mcp.client.oauth.records import BadRecord, Key, Record, dump, parse

LOCK_WAIT = 60.0  # seconds; another kage holds it while it asks the authorization server
_STEP = 0.02
_SERVICE = "kage mcp sign-in"
_ELSEWHERE = '"keyring": true'  # stands in a file whose secrets are in the keyring


class Keyring(Protocol):
    """What is used of the ``keyring`` package."""

    def get_password(self, service_name: str, username: str) -> str | None:
        """Give a secret, None when there is none."""
        ...

    def set_password(self, service_name: str, username: str, password: str) -> None:
        """Keep a secret."""
        ...

    def delete_password(self, service_name: str, username: str) -> None:
        """Forget a secret."""
        ...


class Vault:
    """Keeps records; every token that passes is told to the redactor.

    Args:
        folder: Where the files and locks are; made when the first one is written.
        notice: Told in words what could not be read or written.
        keyring: Holds the secrets instead of the files; these then name only whose they are.
    """

    def __init__(
        self,
        folder: Path,
        *,
        redactor: Redactor,
        notice: Callable[[str], None],
        keyring: Keyring | None = None,
    ) -> None:
        self.folder = folder
        self._redactor = redactor
        self._notice = notice
        self._keyring = keyring
        self._seen: dict[Key, tuple[object, Record | None]] = {}

    def load(self, key: Key) -> Record | None:
        """Give what is kept for ``key``; a file that did not change is not read again."""
        path = self._path(key)
        mark = _mark(path)
        seen = self._seen.get(key)
        if seen is not None and seen[0] == mark:
            return seen[1]
        record = self._read(path, key) if mark is not None else None
        self._remember(key, record)
        return record

    def save(self, record: Record) -> None:
        """Keep ``record``; what cannot be written holds until kage ends, and that is said."""
        path = self._path(record.key)
        try:
            self._make_folder()
            text = dump(record)
            if self._keyring is not None:
                self._keyring.set_password(_SERVICE, record.key.digest, text)
                text = json.dumps({"keyring": True, **_whose(record.key)})
            replace(path, text.encode())
        except OSError as error:
            why = error.strerror or "it failed"
            self._notice(f"The sign-in at {record.server} could not be kept in {path}: {why}")
        except Exception as error:  # boundary: each keyring has errors of its own
            self._notice(f"The keyring did not take the sign-in at {record.server}: {error}")
        self._remember(record.key, record)

    def forget(self, key: Key) -> bool:
        """Drop what is kept for ``key``; False when nothing was."""
        path = self._path(key)
        self._seen.pop(key, None)
        if self._keyring is not None:
            with contextlib.suppress(Exception):  # boundary: an entry that is not there raises
                self._keyring.delete_password(_SERVICE, key.digest)
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        return True

    def keys(self, server: str) -> Iterator[Key]:
        """Find every sign-in of servers called ``server``, also of entries that are gone."""
        for path in sorted(self.folder.glob("*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
                data = json.loads(content(path))
                key = Key(server=data["server"], origin=data["origin"], url=data["url"])
                if key.server == server and self._path(key) == path:
                    yield key

    @asynccontextmanager
    async def locked(self, key: Key) -> AsyncIterator[None]:
        """Keep other kages from changing the record of ``key`` meanwhile.

        Where no lock can be had, for whatever reason, the work goes on without and that is said.
        """
        lock = self._open_lock(key)
        if lock is None:
            yield
            return
        try:
            end = asyncio.get_running_loop().time() + LOCK_WAIT
            while not _taken(lock):
                if asyncio.get_running_loop().time() > end:
                    self._notice(f"Another kage keeps the sign-in at {key.server} locked")
                    break
                await asyncio.sleep(_STEP)
            yield
        finally:
            os.close(lock)

    def _open_lock(self, key: Key) -> int | None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._make_folder()
            return os.open(self._path(key).with_suffix(".lock"), flags, 0o600)
        except OSError as error:
            self._notice(f"{self.folder} cannot be used: {error.strerror or error}")
            return None

    def _make_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.folder.stat().st_mode & 0o077:
            self.folder.chmod(0o700)

    def _path(self, key: Key) -> Path:
        return self.folder / f"{key.digest}.json"

    def _remember(self, key: Key, record: Record | None) -> None:
        if record is not None:
            for name, value in record.secrets():
                self._redactor.add(name, value)
        self._seen[key] = (_mark(self._path(key)), record)

    def _read(self, path: Path, key: Key) -> Record | None:
        try:
            text = _private_text(path)
            if self._keyring is not None and _ELSEWHERE in text:
                text = self._keyring.get_password(_SERVICE, key.digest) or ""
                if not text:
                    return None
            elif _ELSEWHERE in text:
                raise BadRecord('it is in the keyring, and token_store is not "keyring"')
            return parse(text, key)
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError, BadRecord) as error:
            why = getattr(error, "strerror", None) or str(error)
            kept = _aside(path) if not isinstance(error, OSError) else ""
            self._notice(f"The sign-in at {key.server} cannot be read: {why}{kept}")
        except Exception as error:  # boundary: each keyring has errors of its own
            self._notice(f"The keyring did not give the sign-in at {key.server}: {error}")
        return None


def find_keyring() -> Keyring | None:
    """Import the ``keyring`` package; None when it is not there or has nothing to keep it in."""
    try:
        found: Any = importlib.import_module("keyring")  # Any: it need not be installed
        nothing: Any = importlib.import_module("keyring.backends.fail")
        usable: Keyring | None = None
        if not isinstance(found.get_keyring(), nothing.Keyring):
            usable = found
    except Exception:  # boundary: its backends raise what they like at import
        return None
    return usable


def _whose(key: Key) -> dict[str, str]:
    return {"server": key.server, "origin": key.origin, "url": key.url}


def _mark(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _private_text(path: Path) -> str:
    with reading(path, follow=False) as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            os.fchmod(file.fileno(), 0o600)
        return file.read(1 << 20).decode()


def _aside(path: Path) -> str:
    """Move a file out of the way; it may be of a newer kage, or worth a look."""
    for number in range(100):
        kept = path.with_name(f"{path.name}.bad{number or ''}")
        if not kept.exists():
            with contextlib.suppress(OSError):
                path.rename(kept)
                return f"; it is kept as {kept}"
    return ""


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
