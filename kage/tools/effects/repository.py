"""Look at a workspace with git, in a repository of kage's own that nothing else ever uses.

Its folder holds settings, attributes and index of its own; of the person's repository only the
objects are read, and its list of tracked files. Nothing that repository says is ever carried out:
no filter, hook, monitor or attribute of it counts, and nothing in it is changed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kage.core.undo import ABSENT, Kind, State
from kage.tools import restore
from kage.tools.effects import folder as folders
from kage.tools.effects.looking import MAX_BYTES, MAX_COPY, MAX_FILES, Before, NotSeen
from kage.tools.effects.program import Git, finish
from kage.tools.effects.quick import Quick

FORMER_TIME = 20.0  # seconds
MAX_NEW = 512 << 20  # bytes of untracked files that are copied for looking
MAX_RECENT = 5_000  # files that are looked at twice
_GRAIN = 2.0  # seconds: git may tell two states apart by whole seconds only

_Entry = tuple[bytes, int, str]  # path, mode, object


@dataclass(slots=True)
class _Listed:
    """A regular file or link that may be added to the index."""

    path: bytes
    status: os.stat_result

    @property
    def fits(self) -> bool:
        """Whether git has a place for such a path."""
        names = self.path.lower().split(b"/")
        linked = stat.S_ISLNK(self.status.st_mode) and names[-1].startswith(b".git")
        return b".git" not in names and not linked and self.status.st_size <= MAX_COPY


@dataclass(slots=True, kw_only=True)
class Repository:
    """Implements ``Eye``; its index is what was seen last."""

    git: Git
    quick: Quick
    without: tuple[bytes, ...] = ()  # beginnings of paths that are not looked at
    _modes: dict[bytes, int] = field(default_factory=dict)
    _others: dict[bytes, os.stat_result] = field(default_factory=dict)  # seen, not copied
    _offered: dict[bytes, os.stat_result] = field(default_factory=dict)  # to git, just now
    _recent: dict[bytes, os.stat_result] = field(default_factory=dict)  # changed just then
    _copied: int = 0
    _ready: bool = False

    def refresh(self, *, seconds: float) -> Mapping[bytes, Before]:
        """See ``Eye``."""
        end = time.monotonic() + seconds
        if self.quick.same() and self._ready:
            return {}
        ready, self._ready = self._ready, False  # where it fails, what was seen counts no longer
        try:
            found = self._again(end) if ready else self._first(end)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise NotSeen(_why(error)) from error
        self._ready = True
        return found

    def former(self, oids: tuple[str, ...]) -> Mapping[str, bytes]:
        """See ``Eye``."""
        if not oids:
            return {}
        end = time.monotonic() + FORMER_TIME
        wanted: list[str] = []
        left = MAX_BYTES
        try:
            sizes = self.git.run(["cat-file", "--batch-check"], end, given=_lines(oids))
            for words in map(bytes.split, sizes.splitlines()):
                if len(words) == 3 and words[1] == b"blob" and int(words[2]) <= left:
                    left -= int(words[2])
                    wanted.append(words[0].decode())
            out = self.git.run(["cat-file", "--batch"], end, given=_lines(wanted))
        except (OSError, ValueError, subprocess.SubprocessError, NotSeen):
            return {}
        return dict(_blobs(out))

    def stop(self) -> None:
        """See ``Eye``."""
        self.git.stop()

    def close(self) -> None:
        """See ``Eye``."""
        shutil.rmtree(self.git.folder, ignore_errors=True)

    # -- the first look: everything

    def _first(self, end: float) -> Mapping[bytes, Before]:
        folders.make(self.git.folder, self.git.workspace, without=self.without)
        self._others.clear()
        self._offered.clear()
        self._recent.clear()
        tracked = self._tracked(end)
        tracked = {path for path in tracked if not path.startswith(self.without)}
        listed = self._listed(tracked | set(self._untracked(end)))
        new = {item.path for item in listed} - tracked
        self._add(listed, end, counted=new)
        self._modes = {item.path: item.status.st_mode for item in listed}
        return {}

    def _tracked(self, end: float) -> set[bytes]:
        """Give the files the person's repository tracks, which may be ignored ones too."""
        index = folders.index_of(self.git.workspace)
        if index is None:
            return set()
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            # an index of a form only that repository can read lists nothing
            return set(_split(self.git.run(["ls-files", "-z"], end, index=index)))
        return set()

    # -- every other look: what differs

    def _again(self, end: float) -> Mapping[bytes, Before]:
        changed, others = self._both(end)
        self._refused(others)
        entries = {path: (mode, oid) for path, mode, oid in (*changed, *self._hasty(changed, end))}
        found = {
            path: Before(state=self._state(path, mode), oid=oid)
            for path, (mode, oid) in entries.items()
        }
        listed = self._listed({*entries, *others})
        now = {item.path: item for item in listed}
        found |= self._watched(set(others) & now.keys() - found.keys(), now)
        for path in self._others.keys() - {*others, *found}:
            found[path] = Before(state=restore.by_status(self._others.pop(path)))
        unknown = [item for item in listed if not self._is_known(item)]
        gone = [path for path in entries if path not in now]
        self._add(unknown, end, gone=gone, counted=set(others))
        for path in found:
            if path in now:
                self._modes[path] = now[path].status.st_mode
            else:
                self._modes.pop(path, None)
        return found

    def _refused(self, others: Sequence[bytes]) -> None:
        """Watch the files git did not take; otherwise they would seem new each time."""
        for path in others:
            if path in self._offered:
                self._others.setdefault(path, self._offered[path])
        self._offered.clear()

    def _watched(self, paths: set[bytes], now: Mapping[bytes, _Listed]) -> dict[bytes, Before]:
        """Compare what is in no index by inode, size and time."""
        found: dict[bytes, Before] = {}
        for path in paths:
            was = self._others.get(path)
            if was is None:
                found[path] = Before(state=ABSENT)
            elif _key(was) != _key(now[path].status):
                found[path] = Before(state=restore.by_status(was))
        return found

    def _is_known(self, item: _Listed) -> bool:
        was = self._others.get(item.path)
        return was is not None and _key(was) == _key(item.status)

    def _hasty(self, changed: Sequence[_Entry], end: float) -> list[_Entry]:
        """Find what changed within the second it was seen in, which git may overlook."""
        told = {path for path, _, _ in changed}
        root = os.fsencode(self.git.workspace)
        missed: list[str] = []
        for path, was in self._recent.items():
            if path in told:
                continue
            with contextlib.suppress(OSError):
                status = os.lstat(os.path.join(root, path))
                if (status.st_ctime_ns, *_key(status)) != (was.st_ctime_ns, *_key(was)):
                    missed.append(os.fsdecode(path))
        found: list[_Entry] = []
        for start in range(0, len(missed), 200):
            part = missed[start : start + 200]
            out = self.git.run(["ls-files", "-s", "-z", "--", *part], end)
            for line in _split(out):
                head, _, path = line.partition(b"\t")
                mode, oid, _ = head.split()
                if path in self._recent:  # a folder stands for what is in it
                    found.append((path, int(mode, 8), oid.decode()))
        since = time.time() - _GRAIN
        self._recent = {p: was for p, was in self._recent.items() if was.st_ctime > since}
        return found

    def _state(self, path: bytes, mode: int) -> State:
        if stat.S_ISLNK(mode):
            return State(kind=Kind.LINK)
        return State(kind=Kind.FILE, mode=stat.S_IMODE(self._modes.get(path, mode)))

    def _both(self, end: float) -> tuple[list[_Entry], list[bytes]]:
        """Ask side by side which known files differ, and which are not known."""
        asked = ["diff-files", "--raw", "-z"]
        with tempfile.TemporaryFile() as out, self.git.started(asked, out) as process:
            others = self._untracked(end)
            finish(process, end)
            out.seek(0)
            return list(_raw(out.read())), others

    def _untracked(self, end: float) -> list[bytes]:
        out = self.git.run(["ls-files", "-z", "--others", "--exclude-standard"], end)
        found = [path for path in _split(out) if not path.endswith(b"/")]  # a repository in it
        if len(found) > MAX_FILES:
            raise NotSeen(f"it has more than {MAX_FILES:,} files")
        return found

    def _listed(self, paths: set[bytes]) -> list[_Listed]:
        """Look at paths; those that are no files, or are gone, are left out."""
        found: list[_Listed] = []
        root = os.fsencode(self.git.workspace)
        for path in sorted(paths):
            with contextlib.suppress(OSError, ValueError):
                status = os.lstat(os.path.join(root, path))
                if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                    found.append(_Listed(path, status))
        return found

    def _add(
        self,
        listed: Sequence[_Listed],
        end: float,
        *,
        gone: Sequence[bytes] = (),
        counted: set[bytes],
    ) -> None:
        """Take files into the index; those that are too large or not readable are only watched."""
        taken: list[bytes] = []
        dropped = list(gone)  # first: a folder may stand where a file stood
        since = time.time() - _GRAIN
        for item in listed:
            size = item.status.st_size if item.path in counted else 0
            if not item.fits or self._copied + size > MAX_NEW or not self._readable(item):
                self._others[item.path] = item.status
                dropped.append(item.path)
                continue
            taken.append(item.path)
            self._copied += size
            self._others.pop(item.path, None)
            self._offered[item.path] = item.status
            if item.status.st_ctime > since and len(self._recent) < MAX_RECENT:
                self._recent[item.path] = item.status
        for path in dropped:
            self._recent.pop(path, None)
        if dropped:
            self._update(["--force-remove", "-z", "--stdin"], dropped, end)
        if taken:
            self._update(["--add", "--remove", "-z", "--stdin"], taken, end)

    def _readable(self, item: _Listed) -> bool:
        link = stat.S_ISLNK(item.status.st_mode)
        place = os.path.join(os.fsencode(self.git.workspace), item.path)
        return link or os.access(place, os.R_OK)

    def _update(self, flags: Sequence[str], paths: Sequence[bytes], end: float) -> None:
        given = b"".join(path + b"\0" for path in paths)
        self.git.run(["update-index", *flags], end, given=given)


def _split(data: bytes) -> list[bytes]:
    return [path for path in data.split(b"\0") if path]


def _raw(data: bytes) -> Iterator[_Entry]:
    """Read ``diff-files --raw -z``: path, mode before, object before."""
    parts = data.split(b"\0")
    for head, path in zip(parts[::2], parts[1::2], strict=False):
        words = head.split()
        if len(words) == 5:
            yield path, int(words[0].lstrip(b":"), 8), words[2].decode()


def _lines(oids: Sequence[str]) -> bytes:
    return "".join(f"{oid}\n" for oid in oids).encode()


def _blobs(out: bytes) -> Iterator[tuple[str, bytes]]:
    """Read what ``cat-file --batch`` gives."""
    at = 0
    while (end := out.find(b"\n", at)) >= 0:
        words = out[at:end].split()
        at = end + 1
        if len(words) == 3 and words[2].isdigit():
            size = int(words[2])
            yield words[0].decode(), out[at : at + size]
            at += size + 1


def _key(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode


def _why(error: Exception) -> str:
    match error:
        case subprocess.TimeoutExpired():
            return "it took too long"
        case OSError():
            return error.strerror or str(error)
        case _:
            return "git could not read it"
