"""What a call costs between the model and the server: many at once, and one with a huge result."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable
from typing import Any

from kage.config.schema import ServerSpec
from kage.core.content import as_text
from kage.core.tools import Tool
from tests.bench.managed import entry, managed, run
from tests.bench.measure import Home, serving
from tests.bench.table import Figure, figure
from tests.stubs import stub
from tests.stubs.base import HANDSHAKE

CALLS = 1000
AT_ONCE = 64
SIZE = 16 << 20
ROUNDS = 5
REVISION = HANDSHAKE[-1]  # the newest one both sides shake hands with
_WIDE = 64 << 20  # bytes one message may have here

Call = Callable[[int], Awaitable[str]]


async def _rate(call: Call) -> float:
    """Give calls per second with so many in flight; every answer is looked at."""
    numbers = iter(range(CALLS))

    async def caller() -> None:
        for number in numbers:
            if await call(number) != f"call {number}":
                raise RuntimeError(f"call {number} has another answer")

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(AT_ONCE)))
    return CALLS / (time.perf_counter() - began)


def _ours(tool: Tool, home: Home) -> Call:
    async def call(number: int) -> str:
        result = await run(tool, home, str(number), {"text": f"call {number}"})
        return as_text(result.content)

    return call


def _theirs(client: Any) -> Call:
    async def call(number: int) -> str:
        result = await client.call_tool("echo", {"text": f"call {number}"})
        return str(result.content[0].text)

    return call


async def _rates(home: Home, spec: ServerSpec, transport: Callable[[], Any]) -> tuple[float, float]:
    """Take kage and the SDK's client by turns; gives the median rates."""
    from mcp import Client

    ours: list[float] = []
    theirs: list[float] = []
    async with managed(home) as manager, Client(transport(), mode="legacy") as client:
        manager.start([spec])
        await manager.settled()
        tools = {tool.spec.name: tool for swap in await manager.apply() for tool in swap.tools}
        for number in range(ROUNDS + 1):
            kage, sdk = await _rate(_ours(tools["s__echo"], home)), await _rate(_theirs(client))
            if number:  # the first warms up
                ours.append(kage)
                theirs.append(sdk)
    return statistics.median(ours), statistics.median(theirs)


def _stdio(home: Home) -> tuple[float, float]:
    from mcp import StdioServerParameters, stdio_client

    command, *args = stub("echo", "--revisions", REVISION)
    parameters = StdioServerParameters(command=command, args=args)
    spec = entry("s", "echo", "--revisions", REVISION, max_parallel_calls=AT_ONCE)
    return asyncio.run(_rates(home, spec, lambda: stdio_client(parameters)))


def _http(home: Home) -> tuple[float, float]:
    argv = stub("http_server", "--json", "--revisions", REVISION)
    pipe = subprocess.PIPE  # the server ends with its input
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            spec = ServerSpec(name="s", transport="http", url=url, max_parallel_calls=AT_ONCE)
            return asyncio.run(_rates(home, spec, lambda: url))
        finally:
            process.kill()


async def _huge(home: Home) -> list[float]:
    """Give the seconds of calls with a huge result, until its text is there."""
    found: list[float] = []
    async with managed(home) as manager:
        manager.start([entry("s", "echo", max_message_bytes=_WIDE)])
        await manager.settled()
        tools = {tool.spec.name: tool for swap in await manager.apply() for tool in swap.tools}
        for number in range(ROUNDS + 1):
            began = time.perf_counter()
            result = await run(tools["s__long"], home, str(number), {"size": SIZE})
            found.append(time.perf_counter() - began)
            if len(as_text(result.content)) != SIZE:
                raise RuntimeError(f"the result is {as_text(result.content)[:200]}")
    return found[1:]


def _raw(home: Home) -> list[float]:
    """Do the same by hand: a line is read and parsed."""
    found: list[float] = []
    with serving(stub("echo"), home) as rpc:
        rpc.initialize()
        for _ in range(ROUNDS + 1):
            began = time.perf_counter()
            rpc.send(rpc.line("tools/call", {"name": "long", "arguments": {"size": SIZE}}))
            answer = json.loads(rpc.hear())
            found.append(time.perf_counter() - began)
            if len(answer["result"]["content"][0]["text"]) != SIZE:
                raise RuntimeError("the result is not whole")
    return found[1:]


def measure() -> list[Figure]:
    """Take every figure of this area."""
    what = f"{CALLS:,} calls, {AT_ONCE} in flight"
    with Home() as home:
        rows = []
        for over, take in (("stdio", _stdio), ("HTTP", _http)):
            ours, theirs = take(home)
            base = ("SDK client", theirs)
            row = figure(f"{what}, {over}", ours, "/s", base=base, least=0.9 * theirs)
            row.goal = "≥ 0.9 ×"
            rows.append(row)
        huge, raw = statistics.median(asyncio.run(_huge(home))), statistics.median(_raw(home))
    base = ("raw JSON client", raw * 1e3)
    size = f"a result of {SIZE >> 20} MiB"
    return [*rows, figure(size, huge * 1e3, "ms", base=base, times=1.5)]
