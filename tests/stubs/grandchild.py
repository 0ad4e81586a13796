"""Has a child of its own that holds stdout: ``--setsid``, ``--deaf``, ``--leader-exits S``."""

from __future__ import annotations

import os
import signal
import sys
import time

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Server

server = Server("grandchild")
server.tool("echo", lambda arguments, call: str(arguments.get("text", "")))
server.tool("leave", lambda arguments, call: os._exit(0))


def start_child() -> int:
    child = os.fork()
    if child:
        return child
    if server.option("setsid", False):
        os.setsid()
    if server.option("deaf", False):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    pid = start_child()
    if "pids" in server.options:
        with open(server.options["pids"], "a") as file:
            file.write(f"{os.getpid()} {pid}\n")
    if "leader-exits" in server.options:
        server.raw(b"")
        time.sleep(server.option("leader-exits", 0.0))
        os._exit(0)
    server.run()
