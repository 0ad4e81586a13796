"""Reads everything and answers nothing; ``--listed``: goes silent after tools/list."""

from __future__ import annotations

import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Server

server = Server("silent")
server.tool("hang", lambda arguments, call: None)
if not server.option("listed", False):
    server.receive = lambda message: None  # type: ignore[method-assign]

if __name__ == "__main__":
    server.run()
