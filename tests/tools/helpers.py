"""Run a built-in tool on a workspace of its own, the way a host does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kage.core.content import as_text
from kage.core.errors import ToolError
from kage.core.tools import Invocation, Tool, ToolResult
from kage.tools import builtin, programs


def invocation(workspace: Path, **arguments: Any) -> Invocation:
    """Make an approved call that may touch ``workspace`` only."""
    return Invocation(
        call_id="call-1",
        arguments=arguments,
        workspace=workspace,
        roots=(workspace,),
        scratch=workspace.parent / "scratch",
    )


@dataclass
class Bench:
    """A workspace with a folder beside it that nothing may touch, and the tools."""

    base: Path
    limit: int = 100_000
    tools: Mapping[str, Tool] = field(init=False)

    def __post_init__(self) -> None:
        self.workspace = self.base / "workspace"
        self.workspace.mkdir()
        self.outside = self.base / "outside"
        self.outside.mkdir()
        (self.outside / "secret.txt").write_text("TOP-SECRET\n")
        made = builtin.create(
            spawner=programs.Groups(),
            environ=os.environ,
            max_output_chars=self.limit,
            allow_loopback=True,
        )
        self.tools = {tool.spec.name: tool for tool in made}

    def call(self, **arguments: Any) -> Invocation:
        return invocation(self.workspace, **arguments)

    async def go(self, tool: str, **arguments: Any) -> ToolResult:
        return await self.tools[tool].run(self.call(**arguments))

    def run(self, tool: str, **arguments: Any) -> ToolResult:
        return asyncio.run(self.go(tool, **arguments))

    def text(self, tool: str, **arguments: Any) -> str:
        return as_text(self.run(tool, **arguments).content)

    def refusal(self, tool: str, **arguments: Any) -> str:
        """Give the text of the error the call must end in."""
        try:
            result = self.run(tool, **arguments)
        except ToolError as error:
            return str(error)
        raise AssertionError(f"{tool} {arguments} was not refused: {result}")


def text_of(result: ToolResult) -> str:
    return as_text(result.content)


def refused(work: Callable[[], Awaitable[object]]) -> str:
    """Run ``work``, which must end in a ToolError; its text."""

    async def main() -> object:
        return await work()

    try:
        result = asyncio.run(main())
    except ToolError as error:
        return str(error)
    raise AssertionError(f"not refused: {result}")
