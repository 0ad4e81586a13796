"""Starts late: says nothing for ``--delay`` seconds (3), then behaves."""

from __future__ import annotations

import sys
import time

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Server

server = Server("slow")
server.tool("echo", lambda arguments, call: str(arguments.get("text", "")))

if __name__ == "__main__":
    time.sleep(server.option("delay", 3.0))
    server.run()
