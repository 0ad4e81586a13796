"""Searching, with ripgrep and without: both give the same."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import pytest

from kage.core.errors import ToolError
from kage.core.tools import ToolResult
from kage.tools import grepping, programs, regexes
from kage.tools.grep import Grep
from tests.tools.helpers import Bench, text_of

ENGINES = [True, False]


def grep_result(bench: Bench, *, use_ripgrep: bool, **arguments: Any) -> ToolResult:
    tool = Grep(
        spawner=programs.Groups(),
        environ=os.environ,
        max_output_chars=100_000,
        use_ripgrep=use_ripgrep,
    )
    return asyncio.run(tool.run(bench.call(**arguments)))


def grep(bench: Bench, *, use_ripgrep: bool, **arguments: Any) -> list[str]:
    return text_of(grep_result(bench, use_ripgrep=use_ripgrep, **arguments)).split("\n")


@pytest.fixture
def tree(bench: Bench) -> Bench:
    files = {
        "a.py": "import os\n\ndef needle():\n    return 1\n",
        "src/b.py": "x = 'Needle'\nneedle = needle\n",
        "src/c.txt": "grüße needle\nno\n",
        "gen/d.py": "needle\n",
        ".hidden/e.py": "needle\n",
    }
    for path, content in files.items():
        place = bench.workspace / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    (bench.workspace / "bin.dat").write_bytes(b"needle\0\xff\n")
    (bench.workspace / "crlf.txt").write_bytes(b"one\r\nneedle two\r\n")
    (bench.workspace / "wide.txt").write_bytes("ein needle\nzwei\n".encode("utf-16"))
    (bench.workspace / "marked.txt").write_bytes(b"\xef\xbb\xbfneedle first\n")
    (bench.workspace / ".gitignore").write_text("gen/\n")
    return bench


PLAIN = [
    "a.py:3:def needle():",
    "crlf.txt:2:needle two",
    "marked.txt:1:needle first",
    "src/b.py:2:needle = needle",
    "src/c.txt:1:grüße needle",
    "wide.txt:1:ein needle",
]


@pytest.mark.parametrize("use_ripgrep", ENGINES)
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": "needle"}, PLAIN),
        ({"pattern": r"def \w+\("}, ["a.py:3:def needle():"]),
        ({"pattern": "needle():", "literal": True}, ["a.py:3:def needle():"]),
        ({"pattern": "NEEDLE", "ignore_case": True, "glob": "b.py"},
         ["src/b.py:1:x = 'Needle'", "src/b.py:2:needle = needle"]),
        ({"pattern": "needle", "glob": "*.py"}, [PLAIN[0], PLAIN[3]]),
        ({"pattern": "needle", "glob": "src/**"}, [PLAIN[3], PLAIN[4]]),
        ({"pattern": "needle", "glob": "*.{py,dat}"}, [PLAIN[0], PLAIN[3]]),
        ({"pattern": "needle", "path": "src"}, [PLAIN[3], PLAIN[4]]),
        ({"pattern": "needle", "path": "src/c.txt"}, [PLAIN[4]]),
        ({"pattern": "def", "context": 1},
         ["a.py-2-", "a.py:3:def needle():", "a.py-4-    return 1"]),
        ({"pattern": "needle", "mode": "files", "glob": "*.py"}, ["a.py", "src/b.py"]),
        ({"pattern": "needle", "mode": "count", "glob": "*.py"}, ["a.py:1", "src/b.py:1"]),
        ({"pattern": "needle", "glob": "*.py", "hidden": True, "ignored": True},
         [".hidden/e.py:1:needle", PLAIN[0], "gen/d.py:1:needle", PLAIN[3]]),
        ({"pattern": "absent"}, ["(no matches)"]),
        ({"pattern": "gr..e need"}, [PLAIN[4]]),
        ({"pattern": "ü+"}, [PLAIN[4]]),
        ({"pattern": r"^\s*return", "glob": "*.py"}, ["a.py:4:    return 1"]),
        ({"pattern": r"s\s+def"}, ["(no matches)"]),
        ({"pattern": "-e"}, ["(no matches)"]),
    ],
)  # fmt: skip
def test_both_engines_find_the_same(
    tree: Bench, use_ripgrep: bool, arguments: dict[str, Any], expected: list[str]
) -> None:
    assert grep(tree, use_ripgrep=use_ripgrep, **arguments) == expected


@pytest.mark.parametrize("use_ripgrep", ENGINES)
def test_more_matches_than_asked_for_are_told(tree: Bench, use_ripgrep: bool) -> None:
    (tree.workspace / "many.txt").write_text("needle\n" * 1000)
    lines = grep(tree, use_ripgrep=use_ripgrep, pattern="needle", glob="many.txt", limit=5)
    assert lines[:5] == [f"many.txt:{n}:needle" for n in range(1, 6)]
    assert "5 matches shown, there are more" in lines[5]


@pytest.mark.parametrize("use_ripgrep", ENGINES)
def test_the_part_of_a_long_line_with_the_match_is_shown(bench: Bench, use_ripgrep: bool) -> None:
    (bench.workspace / "min.js").write_text("x" * 1_000_000 + "NEEDLE" + "y" * 1_000_000 + "\n")
    (line,) = grep(bench, use_ripgrep=use_ripgrep, pattern="NEEDLE")
    assert "NEEDLE" in line
    assert len(line) < 1000


@pytest.mark.parametrize("use_ripgrep", ENGINES)
@pytest.mark.parametrize(
    "pattern", ["(", "a{2,1}", "[z-a]", "(?=look)", r"(a)\1", "", "a\nb", "\0"]
)
def test_a_pattern_that_cannot_be_used_is_a_clear_error(
    bench: Bench, use_ripgrep: bool, pattern: str
) -> None:
    (bench.workspace / "a.txt").write_text("aaa\n")
    with pytest.raises(ToolError, match="pattern"):
        grep(bench, use_ripgrep=use_ripgrep, pattern=pattern)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x", "(x+x+)+y"])
def test_a_catastrophic_pattern_is_ended(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    monkeypatch.setattr(grepping, "DEADLINE", 1.0)
    (bench.workspace / "a.txt").write_text("a" * 60 + "!" + "x" * 60 + "\n")
    started = time.monotonic()
    for use_ripgrep in ENGINES:
        try:
            grep(bench, use_ripgrep=use_ripgrep, pattern=pattern)
        except ToolError as error:
            assert "took longer" in str(error)
    assert time.monotonic() - started < 20


def test_cancelling_ends_the_search(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("a" * 60 + "!\n")
    tool = Grep(
        spawner=programs.Groups(), environ=os.environ, max_output_chars=1000, use_ripgrep=False
    )

    async def main() -> None:
        task = asyncio.ensure_future(tool.run(bench.call(pattern="(a+)+$")))
        done, _ = await asyncio.wait((task,), timeout=0.5)
        assert not done
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


@pytest.mark.parametrize("pattern", [r"\p{L}", r"\z", "[[:alpha:]]", "[a&&b]", "a++", r"\x{41}"])
def test_what_only_ripgrep_knows_is_said_to_need_it(bench: Bench, pattern: str) -> None:
    with pytest.raises(ToolError, match="needs ripgrep"):
        grep(bench, use_ripgrep=False, pattern=pattern)


@pytest.mark.parametrize("pattern", [r"\d+\.\d{2}", "[]a]", "[^]a-z]", r"(?i)x", r"(?P<n>x)|y$"])
def test_the_common_subset_is_taken(pattern: str) -> None:
    assert regexes.portable(pattern, literal=False, ignore_case=False).pattern == pattern


def test_a_gigantic_line_does_not_take_the_memory(bench: Bench) -> None:
    with (bench.workspace / "huge.txt").open("wb") as file:
        for _ in range(700):
            file.write(b"a" * (1 << 20))
    (bench.workspace / "small.txt").write_text("needle\n")
    lines = grep(bench, use_ripgrep=True, pattern="needle")
    assert lines[0] == "small.txt:1:needle"


def test_names_that_look_like_options_or_records_are_only_names(bench: Bench) -> None:
    for name in ("--pre=sh", "-f", "a:1:2:x", "b\nc", "--"):
        (bench.workspace / name).write_text("needle\n")
    for use_ripgrep in ENGINES:
        lines = grep(bench, use_ripgrep=use_ripgrep, pattern="needle")
        assert len(lines) == 5
        assert all(line.endswith(":1:needle") for line in lines)


@pytest.mark.parametrize("use_ripgrep", ENGINES)
def test_folders_deeper_than_any_path_cost_only_themselves(bench: Bench, use_ripgrep: bool) -> None:
    (bench.workspace / "a.txt").write_text("needle\n")
    (bench.workspace / "deep").mkdir()
    held = os.open(bench.workspace / "deep", os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=held)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = below
    os.close(held)
    lines = grep(bench, use_ripgrep=use_ripgrep, pattern="needle")
    assert lines[0] == "a.txt:1:needle"
    lines = grep(bench, use_ripgrep=use_ripgrep, pattern="absent")
    assert lines[0] == "(no matches)"
