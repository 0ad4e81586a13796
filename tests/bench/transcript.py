"""Figures of the transcript: streaming, long sessions, fences, resize; ratios of one run.

CPU seconds of this process, medians where a figure is small.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from textual.app import App, ComposeResult

from kage.tui.transcript.model import ToolRow, TranscriptModel
from kage.tui.transcript.view import TranscriptView

SIZE = (120, 40)
DELTA = 100  # characters of one delta
PROSE = (
    "## Step {n}\n\nThe *cart* keeps `items` in **order**, see [the guide](https://example.org/{n})"
    " and the notes below; nothing else touches them, so the test can stay as it is.\n\n"
    "- first look at `cart.py`, line {n}\n- then at the test\n  - its fixture\n\n"
    "| name | count |\n|:-----|------:|\n| a{n} | {n} |\n| b | 2 |\n\n"
    "```python\ndef total(items: list[int]) -> int:\n    return sum(items)  # {n}\n```\n\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row of the table."""

    name: str
    value: float
    unit: str
    baseline: str
    ratio: float | None
    goal: str
    ok: bool


class Bench(App[None]):
    """Nothing but the view."""

    def __init__(self, model: TranscriptModel) -> None:
        super().__init__()
        self.model = model

    def compose(self) -> ComposeResult:
        yield TranscriptView(self.model)

    @property
    def view(self) -> TranscriptView:
        return self.query_one(TranscriptView)


def markdown(size: int) -> str:
    """Give about ``size`` characters of everyday markdown."""
    parts: list[str] = []
    length = number = 0
    while length < size:
        parts.append(PROSE.replace("{n}", str(number)))
        length += len(parts[-1])
        number += 1
    return "".join(parts)


def session(blocks: int) -> TranscriptModel:
    """Make a session of ``blocks`` blocks as it comes from disk."""
    model = TranscriptModel()
    text = markdown(1_200)
    for number in range(blocks // 3):
        model.add_user(f"u{number}", "and what about the other one?")
        model.add_reply(f"r{number}", text, "anthropic:model")
        model.add_tool(f"c{number}", ToolRow(label="bash", state="ok", seconds=1.0, body="x"))
    return model


async def frames(model: TranscriptModel, text: str, step: int, count: int) -> list[float]:
    """Stream ``text`` in portions, one completed frame each; CPU milliseconds per frame."""
    app = Bench(model)
    async with app.run_test(size=SIZE) as pilot:
        model.begin_reply("stream", "anthropic:model")
        app.view.follow()
        await pilot.pause()
        out: list[float] = []
        for number in range(count):
            start = time.process_time()
            model.stream_text("stream", text[number * step : (number + 1) * step])
            app.view.update()
            await pilot.pause(0)
            out.append((time.process_time() - start) * 1_000)
        return out


def frame(blocks: int) -> float:
    """Give the median CPU milliseconds of a streamed frame with ``blocks`` blocks behind it."""
    return statistics.median(asyncio.run(frames(session(blocks), markdown(8_000), 40, 150))[20:])


def fence(size: int) -> tuple[float, float]:
    """Give the cost of early and of late frames of one open fence of ``size`` characters."""
    line = "    result = compute(values, key=lambda item: item.name)  # a line of code\n"
    text = "```python\n" + line * (size // len(line))
    costs = asyncio.run(frames(TranscriptModel(), text, len(line), size // len(line)))
    part = len(costs) // 8
    return statistics.median(costs[part : part * 2]), statistics.median(costs[-part:])


async def _burst(size: int, seconds: float) -> tuple[float, list[float]]:
    """Stream ``size`` characters over ``seconds``, drawing at the view's own pace."""
    model = TranscriptModel()
    app = Bench(model)
    text = markdown(size)
    late: list[float] = []

    async def probe() -> None:
        while True:
            asked = time.monotonic()
            await asyncio.sleep(0.005)
            late.append((time.monotonic() - asked - 0.005) * 1_000)

    async with app.run_test(size=SIZE) as pilot:
        model.begin_reply("stream", "anthropic:model")
        await pilot.pause()
        probing = asyncio.create_task(probe())
        start, clock = time.process_time(), time.monotonic()
        for at in range(0, len(text), DELTA):
            model.stream_text("stream", text[at : at + DELTA])
            due = clock + seconds * at / len(text)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        model.end_reply("stream", stop="end")
        app.view.update()
        await pilot.pause(0)
        cost = time.process_time() - start
        probing.cancel()
        shown = [app.view.render_line(y).text.strip() for y in range(SIZE[1])]
        if shown[-1].removeprefix("│").strip() != text.rstrip().split("\n")[-2].strip():
            raise AssertionError("the last line is not on the screen")
        return cost, late


def burst(size: int, seconds: float) -> tuple[float, float, float]:
    """Give CPU seconds, and median and p99 of how late the loop was, in milliseconds."""
    cost, late = asyncio.run(_burst(size, seconds))
    return cost, statistics.median(late), statistics.quantiles(late, n=100)[-1]


async def _paint(blocks: int) -> None:
    app = Bench(session(blocks))
    async with app.run_test(size=SIZE) as pilot:
        app.view.update()
        await pilot.pause(0)


def first_paint(blocks: int) -> float:
    """Give the CPU seconds of a process that shows a session of ``blocks`` blocks once."""
    code = f"import tests.bench.transcript as b; b.asyncio.run(b._paint({blocks}))"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def _resize(blocks: int) -> float:
    app = Bench(session(blocks))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        costs: list[float] = []
        for width in (100, 118, 90, 121, 80):
            start = time.process_time()
            await pilot.resize_terminal(width, 40)
            app.view.update()
            await pilot.pause(0)
            costs.append((time.process_time() - start) * 1_000)
        return statistics.median(costs)


def build(blocks: int) -> float:
    """Give CPU milliseconds to take a session from disk into the model."""
    start = time.process_time()
    session(blocks)
    return (time.process_time() - start) * 1_000


def measure(say: Callable[[str], None]) -> list[Figure]:
    """Take every figure."""
    out: list[Figure] = []

    def note(name: str, value: float, unit: str, base: float, what: str, limit: float) -> None:
        ratio = value / base if base else 0.0
        say(name)
        out.append(
            Figure(name=name, value=value, unit=unit, baseline=f"{what} {base:.2f}", ratio=ratio,
                   goal=f"≤ {limit:g} ×", ok=ratio <= limit)
        )  # fmt: skip

    def plain(name: str, value: float, unit: str, limit: float) -> None:
        say(name)
        out.append(Figure(name=name, value=value, unit=unit, baseline="", ratio=None,
                          goal=f"≤ {limit:g} {unit}", ok=value <= limit))  # fmt: skip

    frame(100)  # warm up
    few, many = frame(100), frame(10_000)
    note("streamed frame, 10,000 blocks behind", many, "ms", few, "100 blocks", 1.5)
    early, late = fence(64_000)
    note("frame at the end of a 64 KB fence", late, "ms", early, "at its start", 1.5)
    gc.collect()
    small, _, _ = burst(250_000, 0.5)
    large, median, worst = burst(1_000_000, 2.0)
    note("1 MB of markdown within 2 s", large, "s", small * 4, "4 × 250 KB", 1.3)
    plain("the same, CPU", large, "s", 3.0)
    plain("the same, loop late by (median)", median, "ms", 50.0)
    plain("the same, loop late by (p99)", worst, "ms", 100.0)
    empty = statistics.median(first_paint(0) for _ in range(3))
    resumed = statistics.median(first_paint(4_000) for _ in range(3))
    note("process to first paint, 4,000 blocks", resumed, "s", empty, "empty", 1.5)
    short, long = asyncio.run(_resize(100)), asyncio.run(_resize(10_000))
    note("resize, 10,000 blocks", long, "ms", short, "100 blocks", 3.0)
    plain("10,000 blocks into the model, CPU", build(10_000), "ms", 400.0)
    return out


def main() -> None:
    """Print the table."""
    figures = measure(lambda name: print(f"… {name}", flush=True))
    print(f"\n{'figure':44} {'value':>10} {'baseline':>18} {'ratio':>7}  {'goal':10} ok")
    for one in figures:
        ratio = "" if one.ratio is None else f"{one.ratio:.2f}"
        value = f"{one.value:.2f} {one.unit}"
        print(f"{one.name:44} {value:>10} {one.baseline:>18} {ratio:>7}  {one.goal:10} "
              f"{'ok' if one.ok else 'NO'}")  # fmt: skip


if __name__ == "__main__":
    main()
