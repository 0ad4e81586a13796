"""Stops reading its stdin after tools/list, or with ``--at-call`` once it is called."""

from __future__ import annotations

import sys
import time

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Json, Server

server = Server("stops_reading")
at_call = server.option("at-call", False)


def stop() -> None:
    while True:
        time.sleep(60)


def listed(params: Json, message: Json) -> None:
    server.answer(message, lambda: {"tools": server.tools})
    if not at_call:
        stop()


server.tool("take", lambda arguments, call: stop(), properties={"text": {"type": "string"}})
server.on["tools/list"] = listed

if __name__ == "__main__":
    server.run()
