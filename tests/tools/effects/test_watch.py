"""Which call changed what: alone, side by side, before the first look, with and without git."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from kage.core.undo import Kind
from kage.tools.effects import watch as watching
from kage.tools.effects.looking import Before, NotSeen
from kage.tools.effects.plain import PlainEye
from kage.tools.effects.program import Git
from kage.tools.effects.watch import Watch

NO_GIT = {"PATH": "/nowhere"}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for every look, however slow the machine is."""
    monkeypatch.setattr(watching, "PATIENCE", 60.0)
    monkeypatch.setattr(watching, "AFTER", 60.0)


def made(tmp_path: Path, environ: Mapping[str, str] = os.environ) -> Watch:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a").write_text("a\n")
    return Watch(tmp_path / "w", tmp_path / "snapshot.git", environ=environ)


def test_calls_side_by_side_each_tell_what_changed_while_they_ran(tmp_path: Path) -> None:
    async def go() -> None:
        watch = made(tmp_path)
        await watch.begin("one")
        watch.workspace.joinpath("first").write_text("1")
        await watch.begin("two")
        watch.workspace.joinpath("second").write_text("2")
        one = await watch.end("one")
        watch.workspace.joinpath("a").write_text("b\n")
        two = await watch.end("two")
        assert [seen.shown for seen in one.seen] == ["first", "second"]
        assert [seen.shown for seen in two.seen] == ["a", "second"]
        assert (one.beside, two.beside) == (1, 1)
        await watch.begin("three")
        assert (await watch.end("three")).total == 0
        watch.workspace.joinpath("a").write_text("by the person\n")
        await watch.begin("four")
        watch.workspace.joinpath("temporary").write_text("x")
        watch.workspace.joinpath("temporary").unlink()
        four = await watch.end("four")
        assert (four.total, four.beside, four.note) == (0, 0, "")
        await watch.close()
        assert not (tmp_path / "snapshot.git").exists()

    asyncio.run(go())


def test_without_git_changes_are_told_but_their_bytes_are_not_known(tmp_path: Path) -> None:
    async def go() -> None:
        watch = made(tmp_path, NO_GIT)
        (watch.workspace / ".gitignore").write_text("build\n")
        await watch.begin("one")
        (watch.workspace / "a").write_text("longer\n")
        (watch.workspace / "b").write_text("new\n")
        (watch.workspace / "build").write_text("ignored\n")
        seen = {item.shown: item for item in (await watch.end("one")).seen}
        assert set(seen) == {"a", "b"}
        assert seen["a"].old is None
        assert seen["b"].before.kind is Kind.ABSENT
        await watch.close()

    asyncio.run(go())


class _Blind:
    """An eye that sees nothing."""

    def __init__(self) -> None:
        self.looks = 0

    def refresh(self, *, seconds: float) -> Mapping[bytes, Before]:
        self.looks += 1
        raise NotSeen("the disk is full")

    def former(self, oids: tuple[str, ...]) -> Mapping[str, bytes]:
        return {}

    def stop(self) -> None:
        pass

    def close(self) -> None:
        pass


def test_what_cannot_be_looked_at_is_said_and_soon_no_longer_tried(tmp_path: Path) -> None:
    async def go() -> None:
        watch = made(tmp_path)
        blind = watch._eye = _Blind()
        for number in range(4):
            await watch.begin(str(number))
            outlook = await watch.end(str(number))
            assert outlook.note == "what it changed is not known: the disk is full"
        assert blind.looks == watching.MAX_TRIES
        await watch.close()

    asyncio.run(go())


def test_a_call_does_not_wait_for_a_slow_first_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> None:
        import threading

        free = threading.Event()
        watch = made(tmp_path, NO_GIT)
        eye = watch._eye
        assert isinstance(eye, PlainEye)
        real = eye.refresh

        class Slow:
            def refresh(self, *, seconds: float) -> Mapping[bytes, Before]:
                free.wait(60)
                return real(seconds=seconds)

            former, stop, close = eye.former, eye.stop, eye.close

        watch._eye = Slow()
        monkeypatch.setattr(watching, "PATIENCE", 0.01)
        allowed: list[float] = []

        def timeout(seconds: float) -> asyncio.Timeout:
            allowed.append(seconds)
            return real_timeout(seconds)

        real_timeout = asyncio.timeout
        monkeypatch.setattr(asyncio, "timeout", timeout)
        for call in ("one", "next"):  # the second does not wait anew
            await watch.begin(call)
            assert "first look" in (await watch.end(call)).note
        assert allowed == [0.01, 0.0]
        free.set()
        monkeypatch.setattr(watching, "PATIENCE", 60.0)
        await watch.begin("two")
        (watch.workspace / "b").write_text("x")
        assert [seen.shown for seen in (await watch.end("two")).seen] == ["b"]
        await watch.close()

    asyncio.run(go())


def test_too_many_changes_are_counted_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        monkeypatch.setattr(watching, "MAX_CHANGES", 2)
        watch = made(tmp_path)
        await watch.begin("one")
        for number in range(3):
            (watch.workspace / f"new{number}").write_text("x")
        outlook = await watch.end("one")
        assert (outlook.seen, outlook.total) == ((), 3)
        assert "too many to be undone" in outlook.note
        await watch.close()

    asyncio.run(go())


@pytest.mark.parametrize("environ", [os.environ, NO_GIT])
def test_folders_kage_writes_to_itself_are_left_out(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    async def go() -> None:
        own = tmp_path / "w" / "[own] data*"
        own.mkdir(parents=True)
        other = tmp_path / "w" / "other"
        watch = Watch(
            tmp_path / "w",
            own / "snapshot.git",
            environ=environ,
            without=(own, tmp_path, tmp_path / "w"),
        )
        await watch.begin("one")
        (own / "log").write_text("x")
        other.write_text("x")
        assert [seen.shown for seen in (await watch.end("one")).seen] == ["other"]
        await watch.close()

    asyncio.run(go())


def test_a_git_that_starts_while_kage_closes_is_ended(tmp_path: Path) -> None:
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    git = Git(program=str(program), workspace=tmp_path, folder=tmp_path)

    class Late(set[subprocess.Popen[bytes]]):
        def add(self, item: subprocess.Popen[bytes]) -> None:
            git.stop()
            super().add(item)

    git._running = Late()
    with pytest.raises(subprocess.CalledProcessError):
        git.run(["status"], time.monotonic() + 30)
