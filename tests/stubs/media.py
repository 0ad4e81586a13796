"""Gives every kind of content: text, image, audio, resources, links, structuredContent.

``--resources``: what its links ``note://`` point at can be read.
"""

from __future__ import annotations

import base64
import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Call, Json, RpcError, Server

server = Server("media")
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
BLOB = base64.b64encode(bytes(range(256))).decode()
PARTS: dict[str, Json] = {
    "text": {"type": "text", "text": "plain \x1b[31mtext\x1b[0m [bold]x[/bold]"},
    "image": {"type": "image", "data": PIXEL, "mimeType": "image/png"},
    "audio": {"type": "audio", "data": BLOB, "mimeType": "audio/wav"},
    "resource": {
        "type": "resource",
        "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "inside"},
    },
    "blob": {"type": "resource", "resource": {"uri": "file:///b.bin", "blob": BLOB}},
    "link": {
        "type": "resource_link",
        "uri": "https://example.invalid/c",
        "name": "c",
        "description": "a link",
        "mimeType": "text/html",
    },
    "own": {"type": "resource_link", "uri": "note://own/1", "name": "own"},
}


def give(arguments: Json, call: Call) -> Json:
    kind = arguments.get("kind", "all")
    if kind == "structured":
        return {"content": [], "structuredContent": {"answer": 42, "list": [1, 2]}}
    if kind == "empty":
        return {"content": []}
    return {"content": list(PARTS.values()) if kind == "all" else [PARTS[kind]]}


server.tool("give", give, properties={"kind": {"type": "string"}})
answer = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
bad = {"content": [], "structuredContent": {"answer": "no number"}}
server.tool("checked", lambda arguments, call: bad, outputSchema=answer)


def read(params: Json, message: Json) -> Json:
    uri = str(params["uri"])
    if not uri.startswith("note://own/"):
        raise RpcError(-32602, "Resource not found")
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": "what the link means"}]}


if server.option("resources", False):
    plain = server._info()
    server._info = lambda: {**plain, "capabilities": {**plain["capabilities"], "resources": {}}}  # type: ignore[method-assign]
    server.on["resources/read"] = read
    server.on["resources/list"] = lambda params, message: {"resources": []}

if __name__ == "__main__":
    server.run()
