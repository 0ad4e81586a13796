"""Lists ``--tools`` (25) in pages of ``--page`` (10); ``--loop`` a cursor, ``--endless``."""

from __future__ import annotations

import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Json, RpcError, Server

server = Server("pages")
server.tool("tool_0", lambda arguments, call: "0")
total, page = server.option("tools", 25), server.option("page", 10)
for number in range(1, total):
    server.tool(f"tool_{number}", lambda arguments, call: str(call.params["name"]))


def listed(params: Json, message: Json) -> Json:
    cursor = params.get("cursor")
    try:
        start = 0 if cursor is None else int(cursor)
    except ValueError:
        raise RpcError(-32602, f"Invalid cursor: {cursor}") from None
    result: Json = {"tools": server.tools[start : start + page]}
    if server.option("endless", False):
        words = "x" * server.option("padding", 10)
        tool = {**server.tools[0], "name": f"tool_{start}", "description": words}
        result = {"tools": [tool]}
        result["nextCursor"] = str(start + 1)
    elif server.option("loop", False):
        result["nextCursor"] = str(page)
    elif start + page < total:
        result["nextCursor"] = str(start + page)
    return result


server.on["tools/list"] = listed

if __name__ == "__main__":
    server.run()
