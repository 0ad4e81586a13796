"""An old server that ignores requests it does not know, instead of refusing them."""

from __future__ import annotations

import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import HANDSHAKE, Json, Server

server = Server("probe_deaf", revisions=HANDSHAKE)
server.tool("echo", lambda arguments, call: str(arguments.get("text", "")))
take = server.receive


def receive(message: Json) -> None:
    if message.get("method") in server.on or "id" not in message:
        take(message)


if __name__ == "__main__":
    server.receive = receive  # type: ignore[method-assign]
    server.run()
