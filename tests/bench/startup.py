"""How soon kage is there, and how much of the memory it takes when it rests."""

from __future__ import annotations

import statistics
import sys
import time

from tests.bench.measure import KAGE, PEERS, Home, Spent, in_turns, rss, whole
from tests.bench.table import Figure, figure
from tests.bench.terminal import Terminal
from tests.stubs import stub


def _version(home: Home) -> list[Figure]:
    found = in_turns(
        {
            "python": lambda: whole((sys.executable, "-c", "pass"), home),
            "kage": lambda: whole((*KAGE, "--version"), home),
        }
    )
    kage, python = found["kage"], found["python"]
    return [
        figure(
            "kage --version", kage.wall * 1e3, "ms", base=("Python", python.wall * 1e3), most=60
        ),
        figure("kage --version, CPU", kage.cpu * 1e3, "ms", base=("Python", python.cpu * 1e3)),
    ]


def _usable(argv: tuple[str, ...], home: Home) -> Spent:
    """Start on a terminal, type a letter as soon as keys are read, wait until it is drawn."""
    with Terminal(argv, home) as terminal:
        wall = terminal.usable()
        return Spent(wall=wall, cpu=_cpu_so_far(terminal.process.pid))


def _cpu_so_far(pid: int) -> float:
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9  # of the main thread, which does all the work


def _first_letter(home: Home) -> list[Figure]:
    chat = (sys.executable, str(PEERS / "chat.py"))
    found = in_turns({"chat": lambda: _usable(chat, home), "kage": lambda: _usable(KAGE, home)}, 9)
    kage, floor = found["kage"], found["chat"]
    return [
        figure("TUI usable (a typed letter is drawn)", kage.wall * 1e3, "ms",
               base=("plainest Textual chat", floor.wall * 1e3), times=1.6),
        figure("TUI usable, CPU", kage.cpu * 1e3, "ms",
               base=("plainest Textual chat", floor.cpu * 1e3)),
    ]  # fmt: skip


def _memory(home: Home) -> list[Figure]:
    """Idle, with one server connected, which loads the SDK."""
    record = home.root / "record.jsonl"
    home.servers({"echo": stub("echo", "--record", record)})
    chat = (sys.executable, str(PEERS / "chat.py"))
    sizes, floors = [], []
    for _ in range(3):
        record.unlink(missing_ok=True)
        with Terminal(KAGE, home) as terminal:
            terminal.usable()
            end = time.monotonic() + 20
            while time.monotonic() < end:  # until it asked the server for its tools
                if record.exists() and b"tools/list" in record.read_bytes():
                    break
                terminal.idle(0.1)
            else:
                raise RuntimeError("the server was never asked for its tools")
            terminal.idle(2)
            sizes.append(rss(terminal.process.pid))
        with Terminal(chat, home) as terminal:
            terminal.usable()
            terminal.idle(0.5)
            floors.append(rss(terminal.process.pid))
    base = ("plainest Textual chat", statistics.median(floors))
    return [
        figure("idle memory, one server, SDK loaded", statistics.median(sizes), "MB",
               base=base, most=110)
    ]  # fmt: skip


def measure() -> list[Figure]:
    """Take every figure of this area."""
    with Home() as home:
        return [*_version(home), *_first_letter(home), *_memory(home)]
