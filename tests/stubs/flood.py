"""Floods with notifications during a call: ``kind`` log, progress, changed or unknown.

``--count N``: without being asked, at the start or with ``--on FILE`` once that is there.
"""

from __future__ import annotations

import json
import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Call, Json, Server

server = Server("flood")
METHODS = {
    "log": ("notifications/message", {"level": "info", "data": "flood"}),
    "changed": ("notifications/tools/list_changed", {}),
    "unknown": ("notifications/whatever", {"x": 1}),
}


def flood(arguments: Json, call: Call) -> str:
    count, kind = int(arguments.get("count", 20_000)), str(arguments.get("kind", "log"))
    if kind == "progress":
        for number in range(count):
            call.progress(number, count)
        return f"{count} progress"
    method, params = METHODS[kind]
    line = json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n"
    while count > 0:
        server.raw(line * min(count, 1000))
        count -= 1000
    return f"flooded with {kind}"


kinds = {"type": "string", "enum": ["progress", *METHODS]}
server.tool("flood", flood, properties={"count": {"type": "integer"}, "kind": kinds})
server.tool("echo", lambda arguments, call: str(arguments.get("text", "")))

if __name__ == "__main__":
    if "count" in server.options:
        asked = {"count": server.options["count"], "kind": server.option("kind", "log")}
        if "on" in server.options:
            server.once_there(server.options["on"], lambda: flood(asked, None))  # type: ignore[arg-type]
        else:
            flood(asked, None)  # type: ignore[arg-type]
    server.run()
