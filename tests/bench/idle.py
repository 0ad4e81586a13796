"""What a resting kage costs the processor."""

from __future__ import annotations

import os
import sys

from tests.bench.measure import KAGE, PEERS, Home, cpu, descendants
from tests.bench.table import Figure, figure
from tests.bench.terminal import Terminal
from tests.stubs import stub

SERVERS = 5
SECONDS = 12.0
_SETTLED = 4.0  # seconds until everything is up


def _idle(terminal: Terminal) -> tuple[float, float]:
    """Give the share of one core in percent: of the program alone, and of what it started."""
    terminal.usable()
    terminal.idle(_SETTLED)
    pid = terminal.process.pid
    below = descendants(pid)
    before, others = cpu(pid), sum(cpu(one) for one in below)
    terminal.idle(SECONDS)
    own = (cpu(pid) - before) / SECONDS * 100
    return own, (sum(cpu(one) for one in below) - others) / SECONDS * 100


def measure() -> list[Figure]:
    """Take every figure of this area."""
    with Home() as home:
        home.servers({f"s{number}": stub("echo") for number in range(SERVERS)})
        with Terminal(KAGE, home) as terminal:
            own, others = _idle(terminal)
        with Terminal((sys.executable, str(PEERS / "chat.py")), home) as terminal:
            floor, _ = _idle(terminal)
    tick = 100 / os.sysconf("SC_CLK_TCK") / SECONDS
    return [
        figure("idle CPU, five servers", own, "%", base=("plainest Textual chat", floor), most=0.5),
        figure("  servers and watchdog", others, "%"),
        figure("  the smallest share that can be seen", tick, "%"),
    ]
