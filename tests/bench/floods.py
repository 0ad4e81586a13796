"""What a person at the keyboard feels, and what memory costs, while a server floods kage."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.measure import KAGE, Home, rss
from tests.bench.table import Figure, figure
from tests.bench.terminal import Terminal
from tests.stubs import stub

LINES = 1_000_000  # on stderr
NOTICES = 20_000
KINDS = ("log", "changed", "unknown")  # of notices
_GAP = 0.03  # seconds between two keys
_LETTERS = 0x4E00  # signs nothing else draws
_REST = 1.5  # seconds after the flood in which memory is still looked at
_PATIENCE = 60.0


@dataclass
class _Felt:
    """Seconds from each key to its sign on the screen, and the most memory seen, in MB."""

    echoes: list[float] = field(default_factory=list)
    memory: float = 0.0

    def key(self, terminal: Terminal, sign: str) -> None:
        """Press a key and wait until it is drawn."""
        terminal.heard.clear()
        began = time.perf_counter()
        terminal.type(sign)
        terminal.until(sign, seconds=_PATIENCE)
        self.echoes.append(time.perf_counter() - began)
        self.memory = max(self.memory, rss(terminal.process.pid))
        terminal.type("\x7f")  # the draft stays short
        terminal.idle(_GAP)

    @property
    def worst(self) -> float:
        """What only one key in a hundred exceeds, in milliseconds."""
        return statistics.quantiles(self.echoes, n=100, method="inclusive")[98] * 1e3


def _ready(terminal: Terminal, record: Path) -> None:
    """Wait until the server was asked for its tools."""
    terminal.usable()
    end = time.monotonic() + _PATIENCE
    while not (record.exists() and b"tools/list" in record.read_bytes()):
        if time.monotonic() > end:
            raise RuntimeError("the server was never asked for its tools")
        terminal.idle(0.1)
    terminal.idle(1.5)


def _flooded(argv: list[str], home: Home) -> tuple[_Felt, _Felt]:
    """Type before a flood and during it."""
    record, start = home.root / "record", home.root / "start"
    done = start.with_name("start.done")
    for file in (record, start, done):
        file.unlink(missing_ok=True)
    home.servers({"f": [*argv, "--on", str(start), "--record", str(record)]})
    calm, flood = _Felt(), _Felt()
    signs: Iterator[str] = (chr(_LETTERS + number) for number in range(1 << 14))
    with Terminal(KAGE, home) as terminal:
        _ready(terminal, record)
        for _ in range(30):
            calm.key(terminal, next(signs))
        start.touch()
        end = time.monotonic() + _PATIENCE
        rest = 0.0
        while not rest or time.monotonic() < rest:
            flood.key(terminal, next(signs))
            if not rest and done.exists():
                rest = time.monotonic() + _REST
            if time.monotonic() > end:
                raise RuntimeError("the flood never ended")
    return calm, flood


def _rows(what: str, argv: list[str], home: Home) -> list[Figure]:
    calm, flood = _flooded(argv, home)
    median = statistics.median(flood.echoes) * 1e3
    base = ("at rest", statistics.median(calm.echoes) * 1e3)
    return [
        figure(f"{what}: key echo, median", median, "ms", base=base, most=100),
        figure("  of a hundred keys the slowest", flood.worst, "ms",
               base=("at rest", calm.worst), most=100),
        figure("  memory growth", flood.memory - calm.memory, "MB", most=50),
    ]  # fmt: skip


def measure() -> Iterator[Figure]:
    """Take every figure of this area."""
    with Home() as home:
        yield from _rows(f"{LINES:,} lines on stderr", stub("noisy", "--lines", LINES), home)
        for kind in KINDS:
            argv = stub("flood", "--count", NOTICES, "--kind", kind)
            yield from _rows(f"{NOTICES:,} notices ({kind})", argv, home)
