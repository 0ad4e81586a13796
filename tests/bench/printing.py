"""How long ``kage -p`` takes: alone, with many slow servers, and per tool call."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from functools import partial

from tests.bench.measure import KAGE, PEERS, Home, Spent, in_turns, whole
from tests.bench.table import Figure, figure
from tests.llm import Request, ScriptedModel, Turn, call, say
from tests.stubs import stub

SLOW = "0.5"  # seconds until a server answers anything
FEW, MANY = 10, 60
FLOOR = "raw script"


def _script(calls: int, *, at_once: bool = False) -> Turn:
    """Answer a conversation: ``calls`` calls, one per turn or all in one, then a text."""

    def turn(request: Request) -> Turn:
        done = len(request.results)
        if done >= calls:
            return say("done")
        count = calls if at_once else 1
        return [call("s0__echo", text=f"call {done + number}") for number in range(count)]

    return turn


def _kage(model: ScriptedModel, home: Home) -> Spent:
    argv = (*KAGE, "-p", "go", "--model", "anthropic:claude-sonnet-4-6", "--allow", "s0__*")
    return whole(argv, home, environ=model.environ())


def _raw(model: ScriptedModel, home: Home, servers: Sequence[Sequence[str]]) -> Spent:
    argvs = [json.dumps(list(argv)) for argv in servers]
    return whole((sys.executable, str(PEERS / "floor_run.py"), model.base_url, *argvs), home)


def _pair(home: Home, servers: Sequence[Sequence[str]], turn: Turn) -> tuple[Spent, Spent, int]:
    """Take kage and the raw script by turns; gives both, and kage's fewest tools of a request."""
    home.servers({f"s{number}": argv for number, argv in enumerate(servers)}, defer="never")
    fewest = 1 << 30
    with ScriptedModel(then=turn) as model:

        def kage() -> Spent:
            nonlocal fewest
            before = len(model.requests)
            spent = _kage(model, home)
            fewest = min(fewest, len(model.requests[before].tools))
            return spent

        found = in_turns({"raw": lambda: _raw(model, home, servers), "kage": kage})
    return found["kage"], found["raw"], fewest


def _one(home: Home) -> list[Figure]:
    kage, raw, _ = _pair(home, [stub("echo")], _script(1))
    return [
        figure("-p, one server, one call", kage.wall, "s", base=(FLOOR, raw.wall), most=0.6),
        figure("-p, one server, one call, CPU", kage.cpu, "s", base=(FLOOR, raw.cpu)),
    ]


def _many(home: Home, count: int) -> list[Figure]:
    servers = [stub("echo", "--start-delay", SLOW)] * count
    kage, raw, fewest = _pair(home, servers, _script(0))
    wanted = count * 9  # the tools of the stub
    own = 10  # the built-ins, and those about servers
    return [
        figure(f"-p, {count} servers of {SLOW} s start", kage.wall, "s",
               base=(FLOOR, raw.wall), times=1.3, plus=0.4),
        figure("  CPU", kage.cpu, "s", base=(FLOOR, raw.cpu)),
        figure("  their tools in the first request", fewest - own, "", least=wanted),
    ]  # fmt: skip


def _per_call(home: Home) -> list[Figure]:
    """Spread the difference between a long and a short run over the calls between them."""
    servers = [stub("echo")]
    home.servers({"s0": servers[0]})
    rows: list[Figure] = []
    for what, at_once in (("one per turn, with its model request", False), ("in one reply", True)):
        with (
            ScriptedModel(then=_script(FEW, at_once=at_once)) as few,
            ScriptedModel(then=_script(MANY, at_once=at_once)) as many,
        ):
            takes = {
                "raw few": partial(_raw, few, home, servers),
                "raw many": partial(_raw, many, home, servers),
                "kage few": partial(_kage, few, home),
                "kage many": partial(_kage, many, home),
            }
            found = in_turns(takes, 9)
        each = 1e3 / (MANY - FEW)
        wall, cpu = (
            {
                name: (getattr(found[f"{name} many"], kind) - getattr(found[f"{name} few"], kind))
                * each
                for name in ("kage", "raw")
            }
            for kind in ("wall", "cpu")
        )
        rows += [
            figure(f"per call, {what}", wall["kage"], "ms", base=(FLOOR, wall["raw"]), most=3),
            figure("  CPU", cpu["kage"], "ms", base=(FLOOR, cpu["raw"])),
        ]
    return rows


def measure() -> list[Figure]:
    """Take every figure of this area."""
    with Home() as home:
        rows = [*_one(home), *_many(home, 10), *_many(home, 30), *_per_call(home)]
        time.sleep(0.2)
        rows.append(figure("processes left", len(home.left()), "", most=0))
    return rows
