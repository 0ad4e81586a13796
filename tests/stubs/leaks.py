"""Gives away its TOKEN wherever a server can say something, plain and encoded, whole and in pieces.

Tools: leak (``how``: text, structured, error, rpc, deep). It leaks its description, instructions,
stderr, a stray line, progress, log messages, a resource and a prompt as well.
"""

from __future__ import annotations

import base64
import os
import sys
from urllib.parse import quote

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Call, Json, RpcError, Server

TOKEN = os.environ.get("TOKEN", "")
RAW = TOKEN.encode()
SAID = " ".join(
    (TOKEN, base64.b64encode(RAW).decode(), base64.b64encode(b"x" + RAW + b"y").decode(),
     base64.urlsafe_b64encode(b"xy" + RAW).decode(), RAW.hex(), RAW.hex().upper(),
     quote(TOKEN, safe=""), f"Bearer {TOKEN}")
)  # fmt: skip
server = Server("leaks")
server.options.setdefault("instructions", f"use {SAID}")


def leak(arguments: Json, call: Call) -> Json | str:
    call.progress(1, 2, f"working with {SAID}")
    server.notify("notifications/message", {"level": "error", "logger": "db", "data": SAID})
    sys.stderr.write(f"fault: {SAID}\n")
    sys.stderr.flush()
    match arguments.get("how"):
        case "structured":
            inner = {"deep": [SAID, {TOKEN: TOKEN}]}
            return {"content": [], "structuredContent": inner}
        case "error":
            return {"content": [{"type": "text", "text": f"failed: {SAID}"}], "isError": True}
        case "rpc":
            raise RpcError(-32000, f"refused: {SAID}", {"why": SAID})
        case "deep":
            link = {"type": "resource_link", "uri": f"memo://{TOKEN}", "name": SAID}
            held = {"type": "resource", "resource": {"uri": "memo://x", "text": SAID}}
            return {"content": [link, held]}
        case _:
            return f"{'padding ' * 20_000}{SAID}"


server.tool("leak", leak, properties={"how": {"type": "string", "description": SAID}},
            title=f"leak {TOKEN}")  # fmt: skip
server.on["resources/list"] = lambda params, message: {
    "resources": [{"uri": "memo://a", "name": SAID, "description": SAID}]
}
server.on["resources/read"] = lambda params, message: {
    "contents": [{"uri": "memo://a", "text": SAID}]
}
server.on["prompts/list"] = lambda params, message: {
    "prompts": [{"name": "hi", "description": SAID}]
}
server.on["prompts/get"] = lambda params, message: {
    "description": SAID,
    "messages": [{"role": "user", "content": {"type": "text", "text": SAID}}],
}
_info = server._info


def _offering() -> Json:
    info = _info()
    info["capabilities"] |= {"resources": {}, "prompts": {}}
    return info


server._info = _offering  # type: ignore[method-assign]  # it has more to give away

if __name__ == "__main__":
    sys.stderr.write(f"starting with {SAID}\n")
    sys.stderr.flush()
    sys.stdout.write(f"no protocol: {SAID}\n")
    sys.stdout.flush()
    server.run()
