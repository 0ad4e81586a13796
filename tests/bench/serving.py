"""What ``kage mcp serve`` costs its client: the start, a call, many calls, memory."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.measure import KAGE, PEERS, RUNS, Home, Rpc, rss, serving
from tests.bench.table import Figure, figure

SERVERS: dict[str, tuple[str, ...]] = {
    "kage": (*KAGE, "mcp", "serve"),
    "SDK": (sys.executable, str(PEERS / "sdk_server.py")),
    "bare loop": (sys.executable, str(PEERS / "bare_server.py")),
}
CALLS = 2_000
IN_FLIGHT = 64


def _start(argv: Sequence[str], home: Home) -> tuple[float, float]:
    """Give the milliseconds to the answer, and those of the processor in them."""
    with serving(argv, home) as rpc:
        taken = rpc.initialize()
        with open(f"/proc/{rpc.process.pid}/schedstat") as file:
            return taken * 1e3, int(file.read().split()[0]) / 1e6


def _trivial(rpc: Rpc, line: bytes) -> float:
    """Give the median milliseconds of one call at a time."""
    taken = []
    for _ in range(CALLS):
        began = time.perf_counter()
        rpc.send(line)
        rpc.hear()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1e3


def _flood(rpc: Rpc, lines: Sequence[bytes]) -> float:
    """Keep ``IN_FLIGHT`` calls open; gives calls per second."""
    began = time.perf_counter()
    for at in range(0, len(lines), IN_FLIGHT):
        batch = lines[at : at + IN_FLIGHT]
        rpc.send(b"".join(batch))
        for _ in batch:
            rpc.hear()
    return len(lines) / (time.perf_counter() - began)


def _running(argv: Sequence[str], home: Home, file: Path) -> tuple[float, float, float, float]:
    """Give ping p50 (ms), call p50 (ms), calls per second, and memory (MB) after all of it."""
    with serving(argv, home) as rpc:
        rpc.initialize()
        rpc.ask("tools/list", {})
        read = {"name": "read", "arguments": {"path": str(file)}}
        rpc.ask("tools/call", read)
        resting = rss(rpc.process.pid)
        ping = _trivial(rpc, rpc.line("ping", {}))
        one = _trivial(rpc, rpc.line("tools/call", read))
        lines = [rpc.line("tools/call", read) for _ in range(CALLS)]
        return ping, one, _flood(rpc, lines), resting


def measure() -> list[Figure]:
    """Take every figure of this area."""
    with Home() as home:
        file = home.workspace / "small.txt"
        file.write_text("one line\n")
        starts: dict[str, list[tuple[float, float]]] = {name: [] for name in SERVERS}
        runs: dict[str, list[tuple[float, ...]]] = {name: [] for name in SERVERS}
        for number in range(RUNS + 1):
            for name, argv in SERVERS.items():
                began, run = _start(argv, home), _running(argv, home, file)
                if number:
                    starts[name].append(began)
                    runs[name].append(run)
    start, spent = (
        {name: statistics.median(one[at] for one in all_) for name, all_ in starts.items()}
        for at in range(2)
    )
    ping, call, flood, memory = (
        {name: statistics.median(run[at] for run in all_) for name, all_ in runs.items()}
        for at in range(4)
    )
    return [
        _row("exec to initialize reply", start, "ms", most=80),
        _row("  CPU", spent, "ms"),
        figure("  beside the SDK", start["kage"], "ms", base=("SDK", start["SDK"])),
        _row("trivial call p50 (read of one line)", call, "ms", most=0.10),
        figure("  beside the SDK", call["kage"], "ms", base=("SDK", call["SDK"]), times=1 / 3),
        _row("ping p50", ping, "ms"),
        _row(f"{IN_FLIGHT} in flight", flood, "/s", least=15_000),
        figure("  beside the SDK", flood["kage"], "/s", base=("SDK", flood["SDK"])),
        _row("memory after the first call", memory, "MB", most=25),
        figure("  beside the SDK", memory["kage"], "MB", base=("SDK", memory["SDK"])),
    ]


def _row(
    name: str,
    found: dict[str, float],
    unit: str,
    *,
    most: float | None = None,
    least: float | None = None,
) -> Figure:
    base = ("bare loop", found["bare loop"])
    return figure(name, found["kage"], unit, base=base, most=most, least=least)
