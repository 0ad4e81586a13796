"""Which files are kage's own: a change to one always asks, in red."""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from kage.config.paths import Paths

PROJECT_FOLDER = ".kage"
PROJECT_SERVERS = ".mcp.json"
PROJECT_LOCK = "mcp.lock"

_FOLD = sys.platform == "darwin"  # its file systems ignore case
_WILD = re.compile(r"[*?\[]")
_FRESH = 1.0  # seconds
_MAX_FILES = 5_000  # looked at for hard links


@dataclass(frozen=True, slots=True)
class _Own:
    places: tuple[Path, ...] = ()  # as named, and with links followed
    keys: frozenset[tuple[int, int]] = frozenset()  # device and inode


class Protected:
    """Says whether a place is one of kage's own files, whatever name it goes by.

    kage's own are its config and data folders whole (settings, plugins, grants, pins, trust,
    sessions, the decision log), apart from the outputs a session leaves for the model to read,
    ``.kage/`` and ``.mcp.json`` of any project, and ``mcp.lock`` of this one. Links are followed,
    hard links and spellings that differ in case are found by device and inode.
    """

    def __init__(
        self,
        *,
        folders: Iterable[Path],
        files: Iterable[Path] = (),
        once_there: Iterable[Path] = (),
    ) -> None:
        self._folders = tuple(folders)
        self._files = tuple(files)
        self._once_there = tuple(once_there)  # files that may well be written anew
        self._seen = _Own()
        self._looked = float("-inf")

    @classmethod
    def of(cls, paths: Paths, workspace: Path) -> Protected:
        """Protect what ``paths`` names and the project's own files in ``workspace``."""
        return cls(
            folders=(paths.config, paths.data, workspace / PROJECT_FOLDER),
            files=(paths.config_file, workspace / PROJECT_SERVERS),
            once_there=(workspace / PROJECT_LOCK,),
        )

    def __call__(self, place: Path) -> bool:
        """Say whether changing ``place`` (absolute) would change kage's own files."""
        real = Path(_real(place))
        if _project_file(place) or _project_file(real):
            return True
        own = self._own()
        if any(_exempt(real, folder) for folder in own.places):
            return False
        if any(_inside(spelled, root) for spelled in {place, real} for root in own.places):
            return True
        return self._same_object(real, own)

    def uproots(self, place: Path) -> bool:
        """Say whether moving or removing ``place`` as a whole would take kage's own files along."""
        real = Path(_real(place))
        return any(_above(real, root) and os.path.lexists(root) for root in self._own().places)

    def _own(self) -> _Own:
        """Give where kage's own files really are; looked up anew once a second."""
        now = time.monotonic()
        if now - self._looked > _FRESH:
            there = (path for path in self._once_there if os.path.lexists(path))
            every = (*self._folders, *self._files, *there)
            places = dict.fromkeys((*every, *(Path(_real(path)) for path in every)))
            keys = frozenset(key for path in every if (key := _key(path)) is not None)
            self._seen = _Own(places=tuple(places), keys=keys)
            self._looked = now
        return self._seen

    def _same_object(self, real: Path, own: _Own) -> bool:
        """Compare by device and inode: bind mounts, case-blind file systems, hard links."""
        if any(_key(ancestor) in own.keys for ancestor in (real, *real.parents)):
            return True
        try:
            found = os.stat(real)
        except (OSError, ValueError):
            return False
        if not stat.S_ISREG(found.st_mode) or found.st_nlink < 2:
            return False
        wanted = (found.st_dev, found.st_ino)
        return any(_key(file) == wanted for file in self._walk())

    def _walk(self) -> Iterator[Path]:
        count = 0
        for root in self._folders:
            for folder, inner, names in os.walk(root):
                if Path(folder).name == "artifacts":
                    inner.clear()
                    continue
                for name in names:
                    count += 1
                    if count > _MAX_FILES:
                        return
                    yield Path(folder, name)


def _exempt(place: Path, root: Path) -> bool:
    """Say whether ``place`` is an output a session left for the model."""
    try:
        parts = place.relative_to(root).parts
    except ValueError:
        return False
    return len(parts) > 3 and parts[0] == "sessions" and parts[2] == "artifacts"


def _project_file(place: Path) -> bool:
    return any(_same(part, PROJECT_FOLDER) for part in place.parts) or _same(
        place.name, PROJECT_SERVERS
    )


def _inside(place: Path, root: Path) -> bool:
    """Say whether ``place`` is ``root`` or below; a shell's wildcard in it may mean any name."""
    mine, theirs = place.parts, root.parts
    return len(mine) >= len(theirs) and _alike(mine, theirs)


def _above(place: Path, root: Path) -> bool:
    mine, theirs = place.parts, root.parts
    return len(mine) <= len(theirs) and _alike(mine, theirs)


def _alike(mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    return all(_same(part, name) for part, name in zip(mine, theirs, strict=False))


def _same(part: str, name: str) -> bool:
    part, name = _folded(part), _folded(name)
    if part == name or not _WILD.search(part):
        return part == name
    return fnmatchcase(name, part) and name.startswith(".") <= part.startswith(".")


def _folded(text: str) -> str:
    # the names of project files are compared without case everywhere: a disk may be case-blind
    return (
        text.casefold() if _FOLD or text.casefold() in (PROJECT_FOLDER, PROJECT_SERVERS) else text
    )


def _real(path: Path) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return os.path.abspath(str(path).replace("\0", "\ufffd"))


def _key(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
