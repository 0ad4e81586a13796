"""Loses a call, ``--how unread|read|half|answered|closed_in|closed_out --count F --go F``."""

from __future__ import annotations

import json
import os
import sys
import time

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Call, Json, Server

server = Server("lossy")
how = server.option("how", "read")


def lose(arguments: Json, call: Call) -> None:
    count = os.open(server.option("count", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(count, b"x")
    if how == "closed_out":
        os.close(1)
        sys.stdin.buffer.read()
        os._exit(0)
    result = {"content": [{"type": "text", "text": "acted"}], "resultType": "complete"}
    answer = json.dumps({"jsonrpc": "2.0", "id": call.id, "result": result}).encode()
    if how != "read":
        server.raw(answer[: len(answer) // 2] if how == "half" else answer + b"\n")
    os._exit(7)


def listed(params: Json, message: Json) -> None:
    server.answer(message, lambda: {"tools": server.tools})
    if how == "closed_in":  # lives on, deaf, as long as the file is there
        os.close(0)
        os.close(os.open(server.option("go", ""), os.O_CREAT | os.O_WRONLY, 0o600))
        while os.path.exists(server.option("go", "")):
            time.sleep(0.01)
        os._exit(0)
    while how == "unread" and not os.path.exists(server.option("go", "")):
        time.sleep(0.01)
    if how == "unread":
        os._exit(7)


server.tool("lose", lose)
server.on["tools/list"] = listed

if __name__ == "__main__":
    server.run()
