"""Dies around a call, ``--when`` before, after (reading it), half (an answer) or idle."""

from __future__ import annotations

import json
import os
import sys
import time

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Call, Json, Server

server = Server("crash")
when = server.option("when", "after")


def die() -> None:
    sys.stderr.write("fatal: the index is corrupt\n")
    sys.stderr.flush()
    os.kill(os.getpid(), server.option("signal", 0)) if server.option("signal", 0) else None
    os._exit(server.option("code", 7))


def crash(arguments: Json, call: Call) -> None:
    if when == "half":
        server.raw(f'{{"jsonrpc":"2.0","id":{json.dumps(call.id)},"result":{{"cont'.encode())
    die()


def listed(params: Json, message: Json) -> None:
    server.answer(message, lambda: {"tools": server.tools})
    if when in {"before", "idle"}:  # before: it reads no more, so a call meets a full pipe or none
        time.sleep(server.option("after", 1.0))
        die()


server.tool("crash", crash)
server.tool("echo", lambda arguments, call: str(arguments.get("text", "")))
server.on["tools/list"] = listed

if __name__ == "__main__":
    server.run()
