"""The official Python client works with what is served, in every mode it has."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp_types import ElicitResult

from kage.tools.builtin import NAMES

MODES = ("auto", "legacy", "2026-07-28")


def client(mode: str, root: Path, **rest: Any) -> Client:
    options = {key: rest.pop(key) for key in ("stub", "confirm") if key in rest}
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tests.mcp.server.launcher", json.dumps({"root": str(root), **options})],
        cwd=str(Path(__file__).parents[3]),
    )
    return Client(stdio_client(server), mode=mode, read_timeout_seconds=60, **rest)


@pytest.mark.parametrize("mode", MODES)
def test_the_eight_tools_are_listed_and_run(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        async with client(mode, tmp_path) as served:
            expected = "2025-11-25" if mode == "legacy" else "2026-07-28"
            assert served.protocol_version == expected
            if mode != "2026-07-28":  # a pinned client asks nobody who is there
                assert served.server_info is not None and served.server_info.name == "kage"
            tools = (await served.list_tools()).tools
            assert tuple(tool.name for tool in tools) == NAMES
            assert all(tool.description and tool.annotations for tool in tools)
            wrote = await served.call_tool("write", {"path": "a.txt", "content": "hello\n"})
            assert not wrote.is_error
            read = await served.call_tool("read", {"path": "a.txt"})
            assert "hello" in read.content[0].text
            ran = await served.call_tool("bash", {"command": "cat a.txt; exit 3"})
            assert "hello" in ran.content[0].text
            found = await served.call_tool("grep", {"pattern": "hell"})
            assert "a.txt" in found.content[0].text
            outside = await served.call_tool("read", {"path": "/etc/passwd"})
            assert outside.is_error
            with pytest.raises(MCPError):
                await served.call_tool("nothing", {})

    asyncio.run(main())
    assert (tmp_path / "a.txt").read_text() == "hello\n"


@pytest.mark.parametrize("mode", MODES)
def test_fifty_calls_at_once_and_progress(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        async with client(mode, tmp_path, stub=True) as served:
            calls = [served.call_tool("echo", {"text": str(n)}) for n in range(50)]
            results = await asyncio.gather(*calls)
            assert [result.content[0].text for result in results] == [str(n) for n in range(50)]
            seen: list[float] = []

            async def note(progress: float, total: float | None, message: str | None) -> None:
                seen.append(progress)

            done = await served.call_tool("progress", {}, progress_callback=note)
            assert done.content[0].text == "done" and seen == sorted(seen) and seen

    asyncio.run(main())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("action", ["accept", "decline"])
def test_confirmation_reaches_the_person_behind_the_client(
    tmp_path: Path, mode: str, action: str
) -> None:
    asked: list[str] = []

    async def person(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action=action, content={} if action == "accept" else None)

    async def main() -> None:
        async with client(
            mode, tmp_path, stub=True, confirm=True, elicitation_callback=person
        ) as served:
            result = await served.call_tool("touch", {"path": "mark"})
            assert result.is_error == (action == "decline")

    asyncio.run(main())
    assert len(asked) == 1 and "touch" in asked[0]
    assert (tmp_path / "mark").exists() == (action == "accept")
