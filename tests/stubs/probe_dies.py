"""An old server that dies on the first request it does not know."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import HANDSHAKE, Json, Server

server = Server("probe_dies", revisions=HANDSHAKE)
server.tool("echo", lambda arguments, call: str(arguments.get("text", "")))
take = server.receive


def receive(message: Json) -> None:
    if "id" in message and message.get("method") not in server.on:
        sys.stderr.write(f"KeyError: {message.get('method')}\n")
        os._exit(server.option("code", 1))
    take(message)


if __name__ == "__main__":
    server.receive = receive  # type: ignore[method-assign]
    server.run()
