"""Read, grep and find through ``kage mcp serve``, beside ripgrep alone."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kage.core.tools import Invocation
from kage.tools.find import Find
from kage.tools.grep import Grep
from kage.tools.programs import Groups
from tests.bench.measure import KAGE, PEERS, RUNS, Home, Rpc, serving
from tests.bench.table import Figure, figure

FILES = 20_000
NEEDLE = "needle_in_the_stack"
EVERY = 2_000  # one file in so many holds the needle


def stack(folder: Path) -> None:
    """Write ``FILES`` files of source-like text into nested folders."""
    chance = random.Random(7)
    words = ["alpha", "beta", "gamma", "return", "import", "value", "self", "index", "total"]
    for number in range(FILES):
        home = folder / f"p{number % 40}" / f"m{number // 40 % 25}"
        if number < 1_000:
            home.mkdir(parents=True, exist_ok=True)
        lines = [" ".join(chance.choices(words, k=8)) for _ in range(30)]
        if number % EVERY == 0:
            lines[15] = f"x = {NEEDLE}"
        suffix = ("py", "md", "ts", "json")[number % 4]
        (home / f"file{number}.{suffix}").write_text("\n".join(lines) + "\n")


def _rg() -> str | None:
    return shutil.which("rg") or shutil.which("rg", path=sysconfig.get_path("scripts"))


def _program(argv: Sequence[str], home: Home) -> float:
    """Give the milliseconds of one run of a program."""
    began = time.perf_counter()
    subprocess.run(argv, cwd=home.workspace, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - began) * 1e3


def _call(rpc: Rpc, tool: str, arguments: dict[str, object]) -> float:
    """Give the milliseconds of one call."""
    began = time.perf_counter()
    rpc.call(tool, arguments)
    return (time.perf_counter() - began) * 1e3


def _medians(takes: Sequence[Callable[[], float]]) -> list[float]:
    """Take all of them by turns and give the median of each."""
    found: list[list[float]] = [[] for _ in takes]
    for number in range(RUNS + 3):
        for values, take in zip(found, takes, strict=True):
            value = take()
            if number:
                values.append(value)
    return [statistics.median(values) for values in found]


def _reading(home: Home) -> list[Figure]:
    file = home.workspace / "large.txt"
    file.write_text("".join(f"line {n:6} of a file of a megabyte\n" for n in range(26_300)))
    sdk = (sys.executable, str(PEERS / "sdk_server.py"))
    bare = (sys.executable, str(PEERS / "bare_server.py"))
    arguments: dict[str, object] = {"path": str(file)}
    whole = {**arguments, "limit": 30_000}
    with (
        serving((*KAGE, "mcp", "serve"), home) as ours,
        serving(sdk, home) as theirs,
        serving(bare, home) as least,
    ):
        for rpc in (ours, theirs, least):
            rpc.initialize()
        kage, first, peer, floor = _medians(
            [
                lambda: _call(ours, "read", whole),
                lambda: _call(ours, "read", arguments),
                lambda: _call(theirs, "read", arguments),
                lambda: _call(least, "read", arguments),
            ]
        )
        answered = ours.call("read", whole)["content"][0]["text"]
    size = len(answered) / 1e6
    return [
        figure(f"read of a 1 MB file ({size:.1f} MB answered)", kage, "ms",
               base=("SDK, all of it", peer), most=6),
        figure("read of a 1 MB file, no limit given", first, "ms",
               base=("bare loop, all of it", floor), most=6),
    ]  # fmt: skip


def _searching(home: Home) -> list[Figure]:
    stack(home.workspace)
    grep: dict[str, object] = {"pattern": NEEDLE}
    find: dict[str, object] = {"pattern": "**/file1999*.py"}
    rg = _rg()
    rows: list[Figure] = []
    with serving((*KAGE, "mcp", "serve"), home) as rpc:
        rpc.initialize()
        takes = [lambda: _call(rpc, "grep", grep), lambda: _call(rpc, "find", find)]
        if rg is not None:
            takes.append(lambda: _program((rg, "-n", NEEDLE, "."), home))
            takes.append(lambda: _program((rg, "--files", "-g", "file1999*.py", "."), home))
        found = _medians(takes)
        hits = rpc.call("grep", grep)["content"][0]["text"].count(NEEDLE)
        assert hits >= FILES // EVERY, hits
        shown = rpc.call("find", find)["content"][0]["text"]
        assert "file19992.py" in shown and "file19993" not in shown, shown
        slow_grep, slow_find = _medians(
            [
                lambda: _by_hand(Grep, grep, home),
                lambda: _by_hand(Find, find, home),
            ]
        )
    if rg is not None:
        rows += [
            figure(f"grep of {FILES:,} files", found[0], "ms", base=("rg", found[2]), times=1.3),
            figure(f"find in {FILES:,} files", found[1], "ms",
                   base=("rg --files", found[3]), most=60),
        ]  # fmt: skip
    return [
        *rows,
        figure(f"grep of {FILES:,} files without rg", slow_grep, "ms", most=350),
        figure(f"find in {FILES:,} files without rg", slow_find, "ms"),
    ]


def _by_hand(kind: type[Grep] | type[Find], arguments: dict[str, object], home: Home) -> float:
    """Run a search in this process, as where ripgrep is not installed; gives milliseconds."""
    tool = kind(
        spawner=Groups(), environ=dict(os.environ), max_output_chars=100_000, use_ripgrep=False
    )
    call = Invocation(
        call_id="c1",
        arguments=arguments,
        workspace=home.workspace,
        roots=(home.workspace,),
        scratch=home.root / "scratch",
        progress=lambda *_: None,
    )
    began = time.perf_counter()
    asyncio.run(tool.run(call))
    return (time.perf_counter() - began) * 1e3


def measure() -> list[Figure]:
    """Take every figure of this area."""
    with Home() as home:
        rows = _reading(home)
    with Home() as home:
        return rows + _searching(home)
