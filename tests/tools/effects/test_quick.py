"""Seeing without git that nothing changed: never a wrong yes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kage.tools.effects import quick
from kage.tools.effects.quick import Quick
from tests.waiting import wait_for


def test_yes_only_when_nothing_at_all_differs(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file = tmp_path / "folder" / "file"
    file.write_text("one")
    seen = Quick(tmp_path)
    assert not seen.same()
    wait_for(seen.same, what="it is old enough to be sure")
    times = file.stat()
    for change in (
        lambda: file.write_text("two"),
        lambda: os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns)),
        lambda: file.chmod(0o600),
        lambda: (tmp_path / "folder" / "new").symlink_to("file"),
        (tmp_path / "folder" / "new").unlink,
        (tmp_path / "empty").mkdir,
    ):
        change()
        assert not seen.same()
        wait_for(seen.same, what="it is old enough to be sure")


def test_in_doubt_it_is_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Quick(tmp_path)
    seen.same()
    wait_for(seen.same, what="it is old enough to be sure")
    monkeypatch.setattr(quick, "MOST", 0)
    (tmp_path / "a").write_text("")
    assert not seen.same()
    assert not seen.same()
    monkeypatch.setattr(os, "scandir", pytest.fail)
    assert not seen.same()
    assert not Quick(tmp_path / "nowhere").same()
