"""Finding files, with ripgrep and without: both give the same."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from kage.tools import programs
from kage.tools.find import Find
from tests.tools.helpers import Bench, text_of

ENGINES = [True, False]


def find(bench: Bench, *, use_ripgrep: bool, **arguments: Any) -> list[str]:
    tool = Find(
        spawner=programs.Groups(),
        environ=os.environ,
        max_output_chars=100_000,
        use_ripgrep=use_ripgrep,
    )
    return text_of(asyncio.run(tool.run(bench.call(**arguments)))).split("\n")


@pytest.fixture
def tree(bench: Bench) -> Bench:
    for path in ("a.py", "src/b.py", "src/deep/c.py", "src/c.txt", "gen/d.py", ".hidden/e.py"):
        place = bench.workspace / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("x = 1\n")
    (bench.workspace / ".gitignore").write_text("gen/\n*.tmp\n")
    (bench.workspace / "src" / "x.tmp").touch()
    (bench.workspace / ".git").mkdir()
    (bench.workspace / ".git" / "f.py").touch()
    (bench.workspace / "link.py").symlink_to("a.py")
    return bench


@pytest.mark.parametrize("use_ripgrep", ENGINES)
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": "*.py"}, ["a.py", "src/b.py", "src/deep/c.py"]),
        ({"pattern": "src/**/*.py"}, ["src/b.py", "src/deep/c.py"]),
        ({"pattern": "*.{txt,tmp}"}, ["src/c.txt"]),
        ({"pattern": "*.py", "path": "src"}, ["src/b.py", "src/deep/c.py"]),
        ({"pattern": "deep/*.py", "path": "src"}, ["src/deep/c.py"]),
        ({"pattern": "*.tmp", "path": "src"}, ["(nothing found)"]),
        ({"pattern": "*.tmp", "ignored": True}, ["src/x.tmp"]),
        ({"pattern": "e.py", "hidden": True}, [".hidden/e.py"]),
        ({"pattern": "f.py", "hidden": True, "ignored": True}, ["(nothing found)"]),
        ({"pattern": "deep", "type": "folder"}, ["src/deep/"]),
        ({"pattern": "*c*", "type": "any"}, ["src/", "src/c.txt", "src/deep/c.py"]),
        ({"pattern": "nothing*"}, ["(nothing found)"]),
    ],
)
def test_files_are_found_by_name_and_path(
    tree: Bench, use_ripgrep: bool, arguments: dict[str, Any], expected: list[str]
) -> None:
    assert find(tree, use_ripgrep=use_ripgrep, **arguments) == expected


@pytest.mark.parametrize("use_ripgrep", ENGINES)
def test_the_cap_is_told(tree: Bench, use_ripgrep: bool) -> None:
    lines = find(tree, use_ripgrep=use_ripgrep, pattern="*.py", limit=1)
    assert lines == ["a.py", "[1 of 3 shown; narrow the pattern or path]"]


@pytest.mark.parametrize("use_ripgrep", ENGINES)
def test_names_with_line_feeds_and_odd_bytes_stay_one_line(bench: Bench, use_ripgrep: bool) -> None:
    (bench.workspace / "a\nb.py").touch()
    (Path(os.fsdecode(os.fsencode(bench.workspace) + b"/raw\xff.py"))).touch()
    (bench.workspace / "-n.py").touch()
    lines = find(bench, use_ripgrep=use_ripgrep, pattern="*.py")
    assert len(lines) == 3
    "".join(lines).encode()


def test_an_ignore_file_above_the_workspace_does_not_count(bench: Bench) -> None:
    (bench.base / ".gitignore").write_text("*\n")
    (bench.workspace / "a.py").touch()
    for use_ripgrep in ENGINES:
        assert find(bench, use_ripgrep=use_ripgrep, pattern="*.py") == ["a.py"]


def test_a_brace_bomb_is_refused(bench: Bench) -> None:
    assert "braces" in bench.refusal("find", pattern="{a,b}" * 30)


def test_a_missing_folder_and_a_file_are_errors(tree: Bench) -> None:
    assert "does not exist" in tree.refusal("find", pattern="*", path="nowhere")
    assert "not a folder" in tree.refusal("find", pattern="*", path="a.py")
