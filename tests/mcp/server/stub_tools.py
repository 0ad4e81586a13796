"""Tools that do what a test of the wire needs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from kage.core.content import Audio, Image, Resource, ResourceLink, Text
from kage.core.errors import ToolError
from kage.core.tools import Invocation, Risk, ToolResult, ToolSpec

Run = Callable[[Invocation], Awaitable[ToolResult]]


class Stub:
    def __init__(self, spec: ToolSpec, run: Run) -> None:
        self.spec = spec
        self.run = run


TOOLS: tuple[Stub, ...] = ()


def tool(risk: Risk = Risk.READ, **properties: Mapping[str, Any]) -> Callable[[Run], Run]:
    def register(run: Run) -> Run:
        global TOOLS  # noqa: PLW0603
        required = [name for name, part in properties.items() if "default" not in part]
        spec = ToolSpec(
            name=run.__name__,
            title=run.__name__.title(),
            description=f"The {run.__name__} stub.",
            schema={
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            },
            risk=risk,
        )
        TOOLS = (*TOOLS, Stub(spec, run))
        return run

    return register


def text(value: str) -> ToolResult:
    return ToolResult(content=(Text(value),))


@tool(text={"type": "string"})
async def echo(call: Invocation) -> ToolResult:
    return text(call.arguments["text"])


@tool(Risk.WRITE, path={"type": "string"})
async def touch(call: Invocation) -> ToolResult:
    path = call.workspace / call.arguments["path"]
    path.write_text(path.read_text() + "x" if path.exists() else "x")
    return text("touched")


@tool(seconds={"type": "number", "minimum": 0})
async def wait(call: Invocation) -> ToolResult:
    try:
        await asyncio.sleep(call.arguments["seconds"])
    except asyncio.CancelledError:
        (call.workspace / "cancelled").touch()
        raise
    return text("waited")


@tool(size={"type": "integer"})
async def big(call: Invocation) -> ToolResult:
    return text("x" * call.arguments["size"])


@tool(how={"enum": ["tool", "crash", "result"]})
async def fail(call: Invocation) -> ToolResult:
    how = call.arguments["how"]
    if how == "tool":
        raise ToolError("It is not there", why="nobody put it there", fix="Put it there")
    if how == "crash":
        raise ZeroDivisionError("a \x1b[31msecret\x1b[0m mistake")
    return ToolResult.error("no luck")


@tool()
async def progress(call: Invocation) -> ToolResult:
    for step in range(1, 6):
        call.progress(step, 5, f"step {step}")
        await asyncio.sleep(0.06)
        call.progress(step - 1, 5, "going back")
    return text("done")


@tool()
async def media(call: Invocation) -> ToolResult:
    return ToolResult(
        content=(
            Text("words"),
            Image(data="aGk=", mime="image/png"),
            Audio(data="aGk=", mime="audio/wav"),
            Resource(uri="file:///a", mime="text/plain", text="inside"),
            Resource(uri="file:///b", blob="aGk="),
            ResourceLink(uri="file:///c", name="c"),
        ),
        structured={"answer": 42},
    )


@tool()
async def noisy(call: Invocation) -> ToolResult:
    print("stray print")
    sys.stdout.flush()
    os.write(1, b"stray write\n")
    subprocess.run(["sh", "-c", "echo stray child; cat"], check=True, timeout=10)
    return text("\ud800 half, \u2028 and \x1b escape")


@tool()
async def stuck(call: Invocation) -> ToolResult:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


@tool()
async def place(call: Invocation) -> ToolResult:
    roots = [str(root) for root in call.roots]
    return text(f"{call.workspace}|{roots}|{dict(call.environment)}")
