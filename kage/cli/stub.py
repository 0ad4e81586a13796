"""``kage mcp stub echo``: a small server that does everything right, for people's own tests."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kage import __version__
from kage.cli.output import examples
from kage.core.content import Text
from kage.core.errors import ToolError
from kage.core.tools import Invocation, Risk, Tool, ToolResult, ToolSpec

MAX_SLEEP = 600.0  # seconds
_TEXT = {"text": {"type": "string", "description": "any text"}}
_NUMBERS = {"a": {"type": "number"}, "b": {"type": "number"}}
_SECONDS = {"seconds": {"type": "number", "minimum": 0, "maximum": MAX_SLEEP}}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plain:
    """A tool that answers at once."""

    spec: ToolSpec
    answer: Callable[[Mapping[str, Any]], str]

    async def run(self, call: Invocation) -> ToolResult:
        return ToolResult(content=(Text(self.answer(call.arguments)),))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sleep:
    """A tool that takes its time, tells its progress and can be cancelled."""

    spec: ToolSpec

    async def run(self, call: Invocation) -> ToolResult:
        seconds = float(call.arguments["seconds"])
        steps = max(1, min(100, round(seconds * 10)))
        for step in range(steps):
            call.progress(step, steps, "sleeping")
            await asyncio.sleep(seconds / steps)
        return ToolResult(content=(Text(f"slept {seconds:g} s"),))


def _fail(arguments: Mapping[str, Any]) -> str:
    raise ToolError(str(arguments["text"]))


def _add(arguments: Mapping[str, Any]) -> str:
    return f"{arguments['a'] + arguments['b']:g}"


def echo_tools() -> tuple[Tool, ...]:
    """Give the tools of the echo server."""
    return (
        _Plain(
            spec=_spec("echo", "Give back the text as it came.", _TEXT),
            answer=lambda arguments: str(arguments["text"]),
        ),
        _Plain(spec=_spec("add", "Add two numbers.", _NUMBERS), answer=_add),
        _Plain(spec=_spec("fail", "Fail with the text as the error.", _TEXT), answer=_fail),
        _Sleep(spec=_spec("sleep", "Take some seconds, with progress.", _SECONDS)),
    )


def _spec(name: str, description: str, properties: Mapping[str, Any]) -> ToolSpec:
    schema = {"type": "object", "properties": dict(properties), "required": list(properties)}
    return ToolSpec(name=name, description=description, schema=schema, risk=Risk.READ)


@click.command(
    "stub",
    epilog=examples(
        "kage mcp add try -- kage mcp stub echo",
        "kage mcp call try__echo text=hello",
        "kage mcp stub echo < messages.jsonl",
    ),
)
@click.argument("which", type=click.Choice(["echo"]))
def stub(which: str) -> None:
    """Be a small MCP server on stdin and stdout, to test a client with.

    Its tools are echo, add, fail and sleep. It speaks every revision kage speaks, and ends when
    stdin ends.
    """
    from kage.mcp.server.serve import serve
    from kage.mcp.server.service import Service

    root = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="kage-stub-") as scratch:
        service = Service(root=root, scratch=Path(scratch), tools=echo_tools, version=__version__)
        sys.exit(serve(service))
