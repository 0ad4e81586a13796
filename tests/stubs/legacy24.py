"""Speaks 2024-11-05 and nothing else."""

from __future__ import annotations

import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Server

server = Server("legacy24", revisions=("2024-11-05",))
server.tool("echo", lambda arguments, call: str(arguments.get("text", "")))

if __name__ == "__main__":
    server.run()
