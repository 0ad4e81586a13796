"""Behaves, but ignores EOF, SIGTERM, SIGHUP and SIGINT: only SIGKILL ends it."""

from __future__ import annotations

import signal
import sys
import time

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Server

server = Server("deaf")
server.tool("echo", lambda arguments, call: str(arguments.get("text", "")))

if __name__ == "__main__":
    for name in ("SIGTERM", "SIGHUP", "SIGINT"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    server.run()
    while True:
        time.sleep(60)
