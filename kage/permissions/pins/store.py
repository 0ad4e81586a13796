"""The folder of pin files: read, replaced under a lock, and whether another kage changed it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from kage.config.keeping import keep_copy, locked
from kage.core.ids import new_id
from kage.core.pins import PinnedDefinition
from kage.permissions.pins import file as pinfile
from kage.permissions.pins.file import Known, Unreadable, stamp_of
from kage.permissions.pins.record import Act

_KEPT = (Act.SEEN, Act.WARNED, Act.ACCEPTED)
Stamp = tuple[int, int, int]


class PinStore:
    """Keeps what definitions looked like; every trouble is told and costs nothing else.

    Args:
        folder: Of the files; made with the first one.
        redact: Applied to what is written.
    """

    def __init__(self, folder: Path, redact: Callable[[str], str]) -> None:
        self.folder = folder
        self._redact = redact
        self._stamps: dict[str, Stamp] = {}
        self._said: set[str] = set()
        self._unheard: list[str] = []
        self._on_notice: Callable[[str], None] | None = None

    def listen(self, on_notice: Callable[[str], None]) -> None:
        """Tell ``on_notice`` what was said so far, and from now on."""
        self._on_notice = on_notice
        unheard, self._unheard = self._unheard, []
        for text in unheard:
            on_notice(text)

    def notice(self, text: str) -> None:
        """Tell something once."""
        if text in self._said:
            return
        self._said.add(text)
        if self._on_notice is None:
            self._unheard.append(text)
        else:
            self._on_notice(text)

    def look(self) -> None:
        """Remember how the files stand now."""
        self._stamps = self._all()

    def changed(self, server: str, origin: str) -> bool:
        """Say whether the file of a server is another than at the last look."""
        path = pinfile.path_of(self.folder, server, origin)
        return stamp_of(path) != self._stamps.get(path.name)

    def read(self, server: str, origin: str) -> Known:
        """Give what is kept of a server."""
        path = pinfile.path_of(self.folder, server, origin)
        try:
            return pinfile.read(path)
        except (OSError, Unreadable) as error:
            self.notice(f"{path}: what definitions looked like cannot be read: {_why(error)}")
            return {}

    def keep(
        self,
        server: str,
        origin: str,
        act: Act,
        part: Mapping[str, PinnedDefinition],
        *,
        since: str,
        record: Callable[[str], bool],
    ) -> bool:
        """Record an act, and keep what it is about; whether it was recorded.

        Args:
            part: Definitions by label.
            record: Writes the log's record with this id; whether it stands on disk.
        """
        path, decision = pinfile.path_of(self.folder, server, origin), new_id("d")
        recorded = False
        try:
            with locked(path):
                recorded = record(decision)
                if recorded:
                    known = dict(self._kept(path))
                    _put(known, act, part, since)
                    about = {"server": server, "origin": origin, "decision": decision}
                    pinfile.write(path, known, about=about, redact=self._redact)
        except OSError as error:
            self.notice(
                f"{path} cannot be written ({_why(error)}); a later change of these tools "
                "is noticed all the same, without what they were before"
            )
            recorded = recorded or record(decision)
        stamp = stamp_of(path)
        if stamp is not None:
            self._stamps[path.name] = stamp
        return recorded

    def _kept(self, path: Path) -> Known:
        try:
            return pinfile.read(path)
        except Unreadable as error:
            self.notice(f"{path} is begun anew: {error}; {keep_copy(path)}")
            return {}

    def _all(self) -> dict[str, Stamp]:
        try:
            with os.scandir(self.folder) as entries:
                names = [entry.name for entry in entries if entry.name.endswith(".json")]
        except OSError:
            return {}
        found = ((name, stamp_of(self.folder / name)) for name in names)
        return {name: stamp for name, stamp in found if stamp is not None}


def _put(
    known: dict[str, PinnedDefinition], act: Act, part: Mapping[str, PinnedDefinition], since: str
) -> None:
    for name, one in part.items():
        before = known.get(name)
        if act is Act.FORGOTTEN:
            known.pop(name, None)
        elif act in _KEPT:
            kept = before.since if before is not None and before.digest == one.digest else since
            known[name] = dataclasses.replace(one, name=name, since=kept)


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
