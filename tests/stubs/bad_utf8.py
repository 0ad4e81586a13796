"""Sends bytes that are no UTF-8, half surrogates and CRLF inside otherwise good answers."""

from __future__ import annotations

import json
import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Call, Json, Server

server = Server("bad_utf8")
TEXTS = {
    "raw": b"caf\xe9 \xff\xfe\x80",
    "surrogate": b"half \\ud83d pair",
    "nul": b"a \\u0000 b",
}


def send(arguments: Json, call: Call) -> None:
    text = TEXTS[str(arguments.get("kind", "raw"))]
    head = b'{"jsonrpc":"2.0","id":%s,"result":' % json.dumps(call.id).encode()
    server.raw(head + b'{"resultType":"complete","content":[{"type":"text","text":"' + text)
    server.raw(b'"}]}}\r\n')


server.tool("send", send, properties={"kind": {"enum": sorted(TEXTS)}})
server.tool("echo", lambda arguments, call: str(arguments.get("text", "")))

if __name__ == "__main__":
    server.raw(b"\xff\xfe not text at all \xc3\n")
    server.run()
