"""Looking at a workspace around a call, beside ``git status`` of the same files."""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kage.tools.effects import watch as watching
from kage.tools.effects.watch import Watch
from tests.bench.searching import FILES, stack
from tests.bench.table import Figure, figure

RUNS = 7


def measure() -> list[Figure]:
    """Take the figures."""
    with tempfile.TemporaryDirectory() as base:
        return list(_figures(Path(base)))


def _figures(base: Path) -> Iterator[Figure]:
    git = shutil.which("git")
    if git is None:
        return
    workspace = base / "workspace"
    workspace.mkdir()
    stack(workspace)
    environ = {"PATH": os.environ["PATH"], "HOME": str(base)}
    name = ("-c", "user.name=b", "-c", "user.email=b@example.org", "-c", "gc.auto=0")

    def run(*words: str) -> float:
        began = time.perf_counter()
        subprocess.run([git, *name, *words], cwd=workspace, env=environ, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        return (time.perf_counter() - began) * 1e3

    run("init", "-q")
    run("add", "-A")
    run("commit", "-qm", "all")
    first, before, after, status, seen = asyncio.run(_looked(workspace, base, run))
    assert seen == 3, seen
    yield figure(f"first look at {FILES:,} committed files, beside the question", first, "ms")
    yield figure(f"look before a call, {FILES:,} files", before, "ms",
                 base=("git status", status), most=300)  # fmt: skip
    yield figure(f"look after a call that changed 3 of {FILES:,} files", after, "ms",
                 base=("git status", status), most=300)  # fmt: skip


async def _looked(workspace: Path, base: Path, run: Callable[..., float]) -> tuple[float, ...]:
    watching.PATIENCE = watching.AFTER = 60.0
    watch = Watch(workspace, base / "snapshot.git", environ=os.environ)
    began = time.perf_counter()
    await watch.begin("first")
    await watch.end("first")
    first = (time.perf_counter() - began) * 1e3
    befores, afters, statuses, seen = [], [], [], 0
    files = sorted(workspace.glob("p1/m1/*"))[:3]
    for number in range(RUNS):
        statuses.append(run("status", "--porcelain"))
        began = time.perf_counter()
        await watch.begin(str(number))
        befores.append((time.perf_counter() - began) * 1e3)
        for file in files:
            file.write_text(f"another {number}\n")
        began = time.perf_counter()
        seen = len((await watch.end(str(number))).seen)
        afters.append((time.perf_counter() - began) * 1e3)
    await watch.close()
    middle = statistics.median
    return first, middle(befores), middle(afters), middle(statuses), seen
