"""Which processes are left when kage ends, however it ends: servers and their children."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from tests.bench.measure import KAGE, Home, descendants, gone
from tests.bench.table import Figure, figure
from tests.bench.terminal import Terminal
from tests.llm import ScriptedModel, call, say
from tests.processes import alive
from tests.stubs import stub

_KILLED = 5.0  # seconds within which nothing may be left after a SIGKILL
_QUIT = 8.0  # the same after leaving, which gives a stubborn server its chance first
_PATIENCE = 20.0

End = Callable[[Terminal], None]
POLITE = {"echo": stub("echo"), "family": stub("grandchild")}
STUBBORN = {"echo": stub("echo"), "deaf": stub("deaf"), "family": stub("grandchild", "--deaf"),
            "far": stub("grandchild", "--setsid", "--deaf")}  # fmt: skip


def _kill(terminal: Terminal) -> None:
    os.kill(terminal.process.pid, signal.SIGKILL)


def _quit(terminal: Terminal) -> None:
    terminal.type("\x11")


def _up(terminal: Terminal, processes: int) -> set[int]:
    """Wait until everything that kage starts is there."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        found = set(descendants(terminal.process.pid))
        if len(found) >= processes:
            terminal.idle(1.0)
            return found | set(descendants(terminal.process.pid))
        terminal.idle(0.1)
    raise RuntimeError(f"only {len(found)} of {processes} processes came up")


def _left(
    home: Home, servers: dict[str, list[str]], end: End, seconds: float, *, in_call: bool = False
) -> tuple[int, float]:
    """End kage and count what is left; gives that and the seconds until nothing was."""
    home.servers(
        {
            name: [*argv, "--record", str(home.root / "record.jsonl")] if name == "echo" else argv
            for name, argv in servers.items()
        }
    )
    children = sum(1 for argv in servers.values() if "grandchild" in str(argv))
    config = home.root / "config" / "kage" / "config.toml"
    if in_call:
        config.write_text('permissions.mcp.echo = "allow"\n' + config.read_text())
    turns = [call("echo__sleep", seconds=60)] if in_call else []
    record = home.root / "record.jsonl"
    with (
        ScriptedModel(turns, then=say("done")) as model,
        Terminal(KAGE, home, environ=model.environ()) as terminal,
    ):
        terminal.usable("x")
        below = _up(terminal, len(servers) + children)
        if in_call:
            terminal.type("\r")
            limit = time.monotonic() + _PATIENCE
            while b"tools/call" not in record.read_bytes():
                if time.monotonic() > limit:
                    raise RuntimeError(f"no call; seen: {bytes(terminal.heard[-800:])!r}")
                terminal.idle(0.1)
        end(terminal)
        began = time.monotonic()
        if not terminal.wait(seconds):
            raise RuntimeError(f"kage is still there; seen: {bytes(terminal.heard[-800:])!r}")
        gone(home.left() | below, seconds)
        taken = time.monotonic() - began
        left = home.left() | {pid for pid in below if alive(pid)}
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    return len(left), taken


def measure() -> list[Figure]:
    """Take every figure of this area."""
    rows: list[Figure] = []
    cases: tuple[tuple[str, dict[str, list[str]], End, float, bool], ...] = (
        ("kill -9 while idle", STUBBORN, _kill, _KILLED, False),
        ("kill -9 in a call", STUBBORN, _kill, _KILLED, True),
        ("quit", POLITE, _quit, _QUIT, False),
        ("quit with stubborn servers", STUBBORN, _quit, _QUIT, False),
    )
    for name, servers, end, seconds, in_call in cases:
        with Home() as home:
            count, taken = _left(home, servers, end, seconds, in_call=in_call)
        rows.append(figure(f"{name}: processes left", count, "", most=0))
        rows.append(figure("  until the last was gone", taken, "s"))
    return rows
