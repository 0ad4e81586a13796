"""Take times and sizes of whole processes; everything in temporary folders of their own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.processes import alive, carrying

ROOT = Path(__file__).resolve().parent.parent.parent
PEERS = Path(__file__).resolve().parent / "peers"
KAGE = (str(Path(sys.executable).parent / "kage"),)
RUNS = 5  # of which the median is taken, after one that warms up
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a whole process took, in seconds; ``cpu`` includes the children it waited for."""

    wall: float
    cpu: float


class Home:
    """A temporary home with a workspace in it; ``environ`` points a program into it."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="kage-bench-"))
        self.workspace = self.root / "work"
        (self.workspace / ".git").mkdir(parents=True)
        (self.root / "runtime").mkdir(mode=0o700)
        self.tag = f"KAGE_BENCH={self.root.name}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        for pid in carrying(self.tag):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.root, ignore_errors=True)

    def environ(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Give an environment that reaches nothing real."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
        key, _, value = self.tag.partition("=")
        return {
            **kept,
            "HOME": str(self.root),
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "PYTHONPATH": str(ROOT),
            "XDG_CONFIG_HOME": str(self.root / "config"),
            "XDG_DATA_HOME": str(self.root / "data"),
            "XDG_CACHE_HOME": str(self.root / "cache"),
            "XDG_STATE_HOME": str(self.root / "state"),
            "XDG_RUNTIME_DIR": str(self.root / "runtime"),
            key: value,
            **(more or {}),
        }

    def servers(self, entries: Mapping[str, Sequence[str]], *, defer: str = "auto") -> None:
        """Write a configuration with these servers, each given by its argv."""
        file = self.root / "config" / "kage" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = ["[mcp]", f'defer_tools = "{defer}"', ""]
        key = self.tag.partition("=")[0]
        for name, argv in entries.items():
            lines += [
                f"[mcp.servers.{name}]",
                f"command = {json.dumps(argv[0])}",
                f"args = {json.dumps(list(argv[1:]))}",
                f'env = {{ {key} = "{self.root.name}" }}',
                "",
            ]
        file.write_text("\n".join(lines))

    def left(self) -> set[int]:
        """Find the processes that were started with this home and still live."""
        return carrying(self.tag)


def whole(
    argv: Sequence[str],
    home: Home,
    *,
    environ: Mapping[str, str] | None = None,
    code: int = 0,
) -> Spent:
    """Run a program to its end.

    Raises:
        RuntimeError: it ended with another code than ``code``.
    """
    with tempfile.TemporaryFile() as heard:
        began = time.perf_counter()
        process = subprocess.Popen(
            argv,
            cwd=home.workspace,
            env=home.environ(environ),
            stdin=subprocess.DEVNULL,
            stdout=heard,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != code:
            heard.seek(0)
            said = heard.read().decode(errors="replace")[-2000:]
            raise RuntimeError(f"{argv} ended with {process.returncode}:\n{said}")
    return Spent(wall=wall, cpu=usage.ru_utime + usage.ru_stime)


def median(take: Callable[[], float], runs: int = RUNS) -> float:
    """Warm up once, then give the median of ``runs``."""
    take()
    return statistics.median(take() for _ in range(runs))


def in_turns(takes: Mapping[str, Callable[[], Spent]], runs: int = RUNS) -> dict[str, Spent]:
    """Take several things by turns, so that a noisy moment meets all of them; medians of each."""
    found: dict[str, list[Spent]] = {name: [] for name in takes}
    for number in range(runs + 1):
        for name, take in takes.items():
            spent = take()
            if number:  # the first warms up
                found[name].append(spent)
    return {
        name: Spent(
            wall=statistics.median(one.wall for one in all_),
            cpu=statistics.median(one.cpu for one in all_),
        )
        for name, all_ in found.items()
    }


def rss(pid: int) -> float:
    """Give the resident memory of a process, in MB."""
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


def cpu(pid: int) -> float:
    """Give the CPU seconds a process has used so far."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def descendants(pid: int) -> list[int]:
    """Find the processes below ``pid``."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(name))
    found, todo = [], [pid]
    while todo:
        below = parents.get(todo.pop(), [])
        found += below
        todo += below
    return found


def gone(pids: set[int], deadline: float) -> float:
    """Wait until none of ``pids`` lives, at most ``deadline`` seconds; gives how long it took."""
    began = time.monotonic()
    while any(alive(pid) for pid in pids) and time.monotonic() - began < deadline:
        time.sleep(0.02)
    return time.monotonic() - began


class Rpc:
    """A child that speaks JSON-RPC over its pipes, driven without a library."""

    def __init__(self, argv: Sequence[str], home: Home) -> None:
        self._began = time.perf_counter()
        self.process = subprocess.Popen(
            argv,
            cwd=home.workspace,
            env=home.environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._in = self.process.stdin.fileno()
        self._out = os.fdopen(os.dup(self.process.stdout.fileno()), "rb", 1 << 20)
        self._number = 0

    def close(self) -> None:
        """End the child by the end of its input."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self._out.close()
        self.process.stdout.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def initialize(self) -> float:
        """Shake hands; gives seconds from the start of the process to its answer."""
        client = {"name": "bench", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                "clientInfo": client})  # fmt: skip
        taken = time.perf_counter() - self._began
        os.write(self._in, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        return taken

    def line(self, method: str, params: Mapping[str, Any]) -> bytes:
        """Make one request."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        return json.dumps(message).encode() + b"\n"

    def send(self, data: bytes) -> None:
        """Write everything."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._in, view) :]

    def hear(self) -> bytes:
        """Read one line.

        Raises:
            RuntimeError: the child is gone.
        """
        line = self._out.readline()
        if not line:
            raise RuntimeError(f"{self.process.args!r} ended with {self.process.wait()}")
        return line

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and give its result.

        Raises:
            RuntimeError: the answer is an error.
        """
        self.send(self.line(method, params))
        answer = json.loads(self.hear())
        if "result" not in answer or answer["result"].get("isError"):
            raise RuntimeError(f"{method}: {str(answer)[:500]}")
        found: dict[str, Any] = answer["result"]
        return found

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool and give its result."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})


@contextlib.contextmanager
def serving(argv: Sequence[str], home: Home) -> Iterator[Rpc]:
    """Start a server and end it."""
    rpc = Rpc(argv, home)
    try:
        yield rpc
    finally:
        rpc.close()
