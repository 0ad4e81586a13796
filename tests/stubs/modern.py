"""Speaks 2026-07-28 and nothing else; requests without its _meta are refused."""

from __future__ import annotations

import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import META, MODERN, Json, Server

server = Server("modern", revisions=(MODERN,))
server.tool("echo", lambda arguments, call: str(arguments.get("text", "")))
take = server.receive


def receive(message: Json) -> None:
    meta = (message.get("params") or {}).get("_meta") or {}
    version = meta.get(META + "protocolVersion")
    if "id" in message and "method" in message and version != MODERN:
        data = {"supported": [MODERN], "requested": version or ""}
        error = {"code": -32022, "message": "Unsupported protocol version", "data": data}
        server.send({"id": message["id"], "error": error})
    else:
        take(message)


if __name__ == "__main__":
    server.receive = receive  # type: ignore[method-assign]
    server.run()
