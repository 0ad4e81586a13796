"""Starting, ending and replacing many servers at once, through kage's own manager."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import time
from pathlib import Path

from kage.config.schema import RestartSpec, ServerSpec
from kage.core.content import as_text
from kage.core.servers import ServerState
from kage.core.tools import Tool
from tests.bench.managed import entry, managed, run
from tests.bench.measure import Home, descendants
from tests.bench.table import Figure, figure

SERVERS = 50
DEAF = 10
START = 0.2  # seconds each server takes before it answers
CALLS = 200
REPLACEMENTS = 20  # good ones, and as many broken ones


async def _fifty(home: Home) -> tuple[float, float, int]:
    """Give the seconds until all are up, the seconds until all are gone, and how many were up."""
    entries = [
        entry(f"s{number}", "deaf" if number < DEAF else "echo", "--start-delay", START)
        for number in range(SERVERS)
    ]
    async with managed(home) as manager:
        began = time.perf_counter()
        manager.start(entries)
        await manager.settled()
        ready = time.perf_counter() - began
        up = sum(s.state is ServerState.CONNECTED for s in manager.statuses())
        began = time.perf_counter()
        await manager.stop()
        return ready, time.perf_counter() - began, up


async def _storm(home: Home, record: Path) -> tuple[float, int, int]:
    """Replace a server while it is called; give the seconds, calls lost and calls doubled."""
    tools: dict[str, Tool] = {}
    quick = RestartSpec(delay=0.05, max_delay=0.05)

    def version(number: int) -> ServerSpec:
        options = ("--record", record, "--version", number)
        return entry("echo", "echo", *options, restart=quick, max_parallel_calls=CALLS)

    async with managed(home) as manager:

        async def boundary() -> None:
            for swap in await manager.apply():
                tools.update({tool.spec.name: tool for tool in swap.tools})

        async def call(number: int) -> bool:
            """Take a while over a call, so that all of them meet the replacements."""
            await asyncio.sleep(number / CALLS * 2)
            text = f"call {number}"
            result = await run(tools["echo__echo"], home, str(number), {"text": text})
            return as_text(result.content) == text

        manager.start([version(0)])
        await manager.settled()
        await boundary()
        began = time.perf_counter()
        calls = [asyncio.create_task(call(number)) for number in range(CALLS)]
        for number in range(1, REPLACEMENTS + 1):
            broken = dataclasses.replace(version(number), command="/nowhere/at/all")
            for wanted in (broken, version(number)):
                manager.start([wanted])
                with contextlib.suppress(Exception):  # the broken one says so
                    await manager.restart("echo")
                await boundary()
        answered = await asyncio.gather(*calls)
        took = time.perf_counter() - began
    sent = [line for line in record.read_text().splitlines() if '"tools/call"' in line]
    return took, answered.count(False), len(sent) - CALLS


def measure() -> list[Figure]:
    """Take every figure of this area."""
    with Home() as home:
        ready, closed, up = asyncio.run(_fifty(home))
        took, lost, doubled = asyncio.run(_storm(home, home.root / "record"))
        left = len(descendants(os.getpid()))
    return [
        figure(f"{SERVERS} servers of {START} s ready", ready, "s", most=3.0),
        figure("  of them up", up, "", least=SERVERS),
        figure(f"the same gone, {DEAF} of them deaf", closed, "s", most=6.0),
        figure(f"{REPLACEMENTS} good and {REPLACEMENTS} broken replacements", took, "s"),
        figure(f"  calls of {CALLS} lost meanwhile", lost, "", most=0),
        figure("  calls sent twice", doubled, "", most=0),
        figure("  processes left", left, "", most=0),
    ]
