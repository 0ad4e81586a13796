"""Ignore files mean what git says they mean."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kage.tools.walk import Walk

LINES = [
    "*.log", "build/", "/top.txt", "docs/*.md", "!keep.log", "**/cache", "a/**/b", "logs/**",
    "# comment", "", "\\#hash", "\\!bang", "trailing   ", "sp\\ ", "*", "!*/", "!*.py", "[ab].txt",
    "foo/bar", "!/build", "x?y", "*.py[co]", "/a/", "{a,b}", "!build/out.txt", "deep/",
]  # fmt: skip
PATHS = [
    "a.log", "keep.log", "build/out.txt", "sub/build/x", "top.txt", "sub/top.txt", "docs/a.md",
    "docs/sub/a.md", "x/cache/f", "cache", "a/b", "a/x/y/b", "logs/1/2", "#hash", "!bang",
    "trailing", "sp ", "m.py", "m.pyc", "a.txt", "b.txt", "foo/bar", "sub/foo/bar", "xzy",
    "{a,b}", "deep/er/file", "sub/deep/file",
]  # fmt: skip


def walked(root: Path, *, hidden: bool = False, ignored: bool = False) -> set[str]:
    walk = Walk(top=root.parts[1:], start=root.parts[1:], hidden=hidden, ignored=ignored)
    return {entry.path for entry in walk if entry.is_file}


def plant(root: Path) -> None:
    for path in PATHS:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("x")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    top=st.lists(st.sampled_from(LINES), max_size=6),
    below=st.lists(st.sampled_from(LINES), max_size=3),
)
def test_a_walk_sees_the_files_git_sees(
    tmp_path_factory: pytest.TempPathFactory, top: list[str], below: list[str]
) -> None:
    root = tmp_path_factory.getbasetemp().resolve() / "ignored"
    if not root.exists():
        root.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        plant(root)
    (root / ".gitignore").write_text("\n".join(top) + "\n")
    (root / "sub" / ".gitignore").write_text("\n".join(below) + "\n")
    done = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    seen = {path for path in done.stdout.split("\0") if path and ".gitignore" not in path}
    assert walked(root) == seen


def test_a_hostile_ignore_file_costs_no_time(tmp_path: Path) -> None:
    (tmp_path / ("a" * 200)).touch()
    (tmp_path / ".gitignore").write_text("\n".join(["*a" * 100 + "b", "[", "{a,b}" * 100, "\\"]))
    assert len(walked(tmp_path)) == 1


def test_an_ignore_file_that_is_a_pipe_or_a_link_is_not_read(tmp_path: Path) -> None:
    import os

    (tmp_path / "secret").write_text("*\n")
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").touch()
    (root / ".gitignore").symlink_to(tmp_path / "secret")
    os.mkfifo(root / "sub" / ".gitignore")
    (root / "sub" / "b.txt").touch()
    assert walked(root) == {"a.txt", "sub/b.txt"}


def test_links_are_not_followed_and_loops_end(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "loop").symlink_to(tmp_path)
    (tmp_path / "sub" / "a.txt").touch()
    assert walked(tmp_path) == {"sub/a.txt"}


def test_a_tree_without_bottom_ends(tmp_path: Path) -> None:
    import os

    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    walk = Walk(top=tmp_path.parts[1:], start=tmp_path.parts[1:])
    assert len(list(walk)) >= 200
    assert walk.too_deep
