"""Answers with one line of ``size`` bytes (100 MB); ``how``: first, last, none, endless."""

from __future__ import annotations

import json
import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Call, Json, Server

server = Server("huge_line")


def huge(arguments: Json, call: Call) -> None:
    left, how = int(arguments.get("size", 100_000_000)), arguments.get("how", "first")
    key = json.dumps(call.id).encode()
    first = b'{"jsonrpc":"2.0","id":%s,"result":' % key
    head = first if how in {"first", "endless"} else b'{"jsonrpc":"2.0","result":'
    server.raw(head + b'{"resultType":"complete","content":[{"type":"text","text":"')
    block = b"x" * (1 << 20)
    while left > 0:
        server.raw(block[:left])
        left -= len(block)
    if how != "endless":
        tail = b',"id":%s}' % key if how == "last" else b"}"
        server.raw(b'"}]}' + tail + b"\n")


number = {"type": "integer"}
server.tool("huge", huge, properties={"size": number, "how": {"type": "string"}})
server.tool("echo", lambda arguments, call: str(arguments.get("text", "")))

if __name__ == "__main__":
    server.run()
