"""The same tool on the official SDK's low-level server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


async def listed(ctx: Any, params: Any) -> types.ListToolsResult:
    """Name the tool."""
    return types.ListToolsResult(tools=[types.Tool(name="read", input_schema=SCHEMA)])


async def called(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Read the file."""
    text = Path(str((params.arguments or {})["path"])).read_text()
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def main() -> None:
    """Serve until the end of the input."""
    server = Server("peer", version="1", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


asyncio.run(main())
