"""Configuration files are watched wherever they are, are not yet, or lead to."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from kage.config.watch import Names, Pace, watch
from tests.waiting import DEADLINE, until

ANEW = "(anew)"
QUICK = Pace(step=20, burst=200)


class Follower:
    """Follows files, and fences: other files whose changes say that all before it was told.

    Each is used in its turn: what is still told of the one before says nothing.
    """

    def __init__(
        self, folder: Path, *files: Path, listed: Callable[[], Iterable[Path]] | None = None
    ) -> None:
        self._fences = [folder / f"fence{number}" for number in range(8)]
        for fence in self._fences:
            fence.write_text("")
        self._files = listed or (lambda: files)
        self.told: list[Names] = []
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        async for changed in watch(self._watched, self.stop, pace=QUICK):
            self.told.append(changed)

    def _watched(self) -> list[Path]:
        return [*self._files(), *self._fences]

    async def heard(self) -> set[str]:
        """Give the names of what was told up to now, ANEW for a watch that was set up."""

        fence = self._fences.pop(0)
        self._fences.append(fence)

        def knocked() -> bool:  # more than once: it may just be set up anew
            fence.write_text("again")
            return any(str(fence) in changed for changed in self.told)

        await until(knocked)
        names = {os.path.basename(path) for changed in self.told for path in changed or (ANEW,)}
        self.told.clear()
        return {name for name in names if not name.startswith("fence")}

    async def ended(self) -> None:
        self.stop.set()
        await asyncio.wait_for(self.task, DEADLINE)


def _append(file: Path) -> None:
    file.write_text(file.read_text() + "\n")


def _replace(file: Path) -> None:  # vim, and most others
    other = file.with_name("new")
    other.write_text("other")
    os.replace(other, file)


def _back_up(file: Path) -> None:  # emacs: the old one is moved aside, a new one is written
    os.rename(file, file.with_name(f"{file.name}~"))
    file.write_text("other")


def _vanish(file: Path) -> None:
    file.unlink()


def _through_the_link(file: Path) -> None:
    (file.parent / "dotfiles" / "real.toml").write_text("other")


def _elsewhere(file: Path) -> None:  # the link is put in place of another
    (file.parent / "other.toml").write_text("other")
    (file.parent / "link").symlink_to(file.parent / "other.toml")
    os.replace(file.parent / "link", file)


LINKS = (_through_the_link, _elsewhere)


@pytest.mark.parametrize("how", [_append, _replace, _back_up, _vanish, *LINKS])
def test_a_change_is_told_and_others_are_not(tmp_path: Path, how: Callable[[Path], None]) -> None:
    root = tmp_path / "project"
    root.mkdir()
    file = root / "config.toml"
    if how in LINKS:
        (root / "dotfiles").mkdir()
        (root / "dotfiles" / "real.toml").write_text("model = 'a:b'")
        file.symlink_to(root / "dotfiles" / "real.toml")
    else:
        file.write_text("model = 'a:b'")

    async def main() -> None:
        follower = Follower(tmp_path, file)
        await until(lambda: follower.told)  # the watch is in place
        follower.told.clear()
        for name in ("other.txt", ".config.toml.swp", "4913"):
            (root / name).write_text("noise")
        assert await follower.heard() == set()
        how(file)
        assert await follower.heard()
        file.write_text("again")  # and it is still watched, wherever it leads now
        assert await follower.heard()
        await follower.ended()

    asyncio.run(main())


def test_a_file_is_told_though_its_folders_come_later_go_and_come_again(tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".kage"
    file = folder / "deeper" / "config.toml"
    folder.parent.mkdir()

    async def main() -> None:
        follower = Follower(tmp_path, file)
        for _ in range(2):
            await until(lambda: follower.told)
            follower.told.clear()
            file.parent.mkdir(parents=True)
            file.write_text("new")
            await until(lambda: follower.told)
            await follower.heard()
            file.write_text("other")
            assert await follower.heard() & {"config.toml", ANEW}
            shutil.rmtree(folder)
            await until(lambda: follower.told)
        await follower.ended()

    asyncio.run(main())


def test_a_folder_that_went_and_is_back_before_anybody_looks_is_watched_anew(
    tmp_path: Path,
) -> None:
    file = tmp_path / "project" / "config.toml"

    def files() -> list[Path]:
        file.parent.mkdir(exist_ok=True)  # looking finds all as it was
        return [file]

    async def main() -> None:
        follower = Follower(tmp_path, file, listed=files)
        await until(lambda: follower.told)
        file.parent.rmdir()
        await until(lambda: len(follower.told) > 1)
        await follower.heard()
        file.write_text("new")
        assert "config.toml" in await follower.heard()
        await follower.ended()

    asyncio.run(main())


def test_what_changed_before_the_watch_was_in_place_is_asked_about(tmp_path: Path) -> None:
    """Whoever follows reads once when it is: nothing between two watches is missed."""
    file = tmp_path / "config.toml"
    file.write_text("a")

    async def main() -> None:
        follower = Follower(tmp_path, file)
        file.write_text("b")  # before its task had its first step
        await until(lambda: follower.told)
        assert follower.told[0] == frozenset()
        await follower.ended()

    asyncio.run(main())


def test_it_ends_soon_also_when_nothing_ever_changes(tmp_path: Path) -> None:
    async def main() -> None:
        follower = Follower(tmp_path, tmp_path / "config.toml")
        await until(lambda: follower.told)
        await follower.ended()
        other = Follower(tmp_path, tmp_path / "config.toml")
        await until(lambda: other.told)
        other.task.cancel()
        await asyncio.wait([other.task], timeout=DEADLINE)
        assert other.task.cancelled()

    asyncio.run(main())
