"""Prints ``--lines`` lines on stderr and leaves with ``--code``, ``--after`` seconds."""

from __future__ import annotations

import os
import sys
import time

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Server

server = Server("exits")

if __name__ == "__main__":
    for number in range(1, server.option("lines", 3) + 1):
        print(f"line {number}: cannot find module", file=sys.stderr)
    time.sleep(server.option("after", 0.0))
    if server.option("signal", 0):
        os.kill(os.getpid(), server.option("signal", 0))
    sys.exit(server.option("code", 1))
