"""Each kage has a folder of its own for its servers' log files, and old ones go."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from kage.mcp.client.servers.shelf import KEEP, own_folder


def _dead_pid() -> int:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_two_managers_of_one_process_never_share_a_folder(tmp_path: Path) -> None:
    one = own_folder(tmp_path)
    assert not one.exists()
    one.mkdir()
    assert own_folder(tmp_path) != one


def test_folders_of_kages_that_ended_go_but_for_the_newest(tmp_path: Path) -> None:
    dead = _dead_pid()
    old = [tmp_path / f"202601{day:02}-120000-{dead}" for day in range(1, 26)]
    alive = tmp_path / f"20250101-120000-{os.getpid()}"
    strange = [tmp_path / "notes", tmp_path / "2026-x", tmp_path / f"20250101-120000-{'9' * 10}"]
    for folder in (*old, alive, *strange):
        folder.mkdir()
        (folder / "server.log").write_text("line\n")
    away = tmp_path.parent / "away"
    away.mkdir()
    (tmp_path / f"20240101-120000-{dead}").symlink_to(away)
    own_folder(tmp_path)
    assert [folder for folder in old if folder.exists()] == old[-KEEP:]
    assert all(folder.exists() for folder in (alive, *strange[:2], away))


def test_a_folder_that_cannot_be_looked_at_is_no_trouble(tmp_path: Path) -> None:
    file = tmp_path / "journals"
    file.write_text("")
    assert own_folder(file).parent == file
