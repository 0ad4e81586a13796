"""Walk a folder tree by descriptors, leaving out what git ignores; never follows a link."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from kage.tools import confine, ignore

MAX_DEPTH = 200  # folders below each other; one descriptor each


@dataclass(frozen=True, slots=True)
class Found:
    """One entry: its path relative to the start, and the open folder it is in."""

    path: str
    name: str
    parent: int  # valid until the next entry is taken
    is_folder: bool
    is_file: bool


@dataclass(slots=True, kw_only=True)
class Walk:
    """A walk from ``start`` (names from ``/``) down; ``top`` is where ignore files begin to count.

    ``top`` is a prefix of ``start``. ``stop`` is asked at every folder. After the walk
    ``too_deep`` says whether folders were left out.
    """

    top: Sequence[str]
    start: Sequence[str]
    hidden: bool = False
    ignored: bool = False
    stop: Callable[[], bool] = lambda: False
    too_deep: bool = field(default=False, init=False)

    def __iter__(self) -> Iterator[Found]:
        """Give files and folders, each folder before what is in it, sorted by name.

        Raises:
            OSError: the start cannot be opened.
        """
        chain: list[ignore.Patterns] = []
        with contextlib.ExitStack() as stack:
            held = stack.enter_context(confine.folder(self.top))
            above: list[str] = []
            for name in self.start[len(self.top) :]:
                self._learn(chain, held, ignore.FILES, len(above))
                above.append(name)
                held = stack.enter_context(confine.folder((name,), start=held))
            yield from self._below(held, above, "", chain)

    def _learn(
        self, chain: list[ignore.Patterns], folder: int, names: Sequence[str], depth: int
    ) -> bool:
        """Add the ignore files of a folder to the chain; say whether there were any."""
        if self.ignored:
            return False
        texts = ignore.read(folder, names)
        if not depth and (exclude := _exclude(folder)) is not None:
            texts.insert(0, exclude)  # the weakest of them
        patterns = ignore.parse(texts, depth=depth)
        if patterns is None:
            return False
        chain.append(patterns)
        return True

    def _below(
        self, parent: int, above: list[str], prefix: str, chain: list[ignore.Patterns]
    ) -> Iterator[Found]:
        if self.stop():
            return
        folder = confine.listing(parent)
        try:
            with os.scandir(folder) as entries:
                found = sorted(
                    (entry.name, entry.is_dir(follow_symlinks=False), _is_file(entry))
                    for entry in entries
                )
            names = [name for name, is_folder, _ in found if not is_folder]
            learned = self._learn(chain, folder, names, len(above))
            for name, is_folder, is_file in found:
                if self._left_out(name, above, chain, is_folder=is_folder):
                    continue
                path = prefix + name
                yield Found(path, name, folder, is_folder, is_file)
                if is_folder:
                    yield from self._enter(folder, name, above, path, chain)
            if learned:
                chain.pop()
        finally:
            os.close(folder)

    def _enter(
        self, folder: int, name: str, above: list[str], path: str, chain: list[ignore.Patterns]
    ) -> Iterator[Found]:
        if len(above) >= MAX_DEPTH:
            self.too_deep = True
            return
        above.append(name)
        try:
            # gone, swapped for a link or not readable: the rest of the tree still counts
            with contextlib.suppress(OSError), confine.folder((name,), start=folder) as held:
                if not confine.describe(os.fstat(held)).startswith("part"):
                    yield from self._below(held, above, f"{path}/", chain)
        finally:
            above.pop()

    def _left_out(
        self, name: str, above: list[str], chain: list[ignore.Patterns], *, is_folder: bool
    ) -> bool:
        if name.startswith(".") and (not self.hidden or name == ".git"):
            return True
        return bool(chain) and ignore.ignored(chain, [*above, name], folder=is_folder)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file(follow_symlinks=False)
    except OSError:
        return False


def _exclude(folder: int) -> str | None:
    """Read the repository's own ignore file, which is not part of the tree."""
    try:
        with confine.folder((".git", "info"), start=folder) as held:
            if stat.S_ISDIR(os.fstat(held).st_mode):
                return ignore.read_one(held, "exclude")
    except OSError:
        pass
    return None
