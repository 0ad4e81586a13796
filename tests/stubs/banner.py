"""Prints text on stdout, where only protocol belongs: at start and between messages."""

from __future__ import annotations

import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Call, Json, Server

server = Server("banner")


def echo(arguments: Json, call: Call) -> str:
    server.raw(b"debug: echo was called\n\n{not json either}\n[1, 2\n")
    return str(arguments.get("text", ""))


server.tool("echo", echo)

if __name__ == "__main__":
    server.raw(b"Welcome to the banner server!\r\n\x1b]0;owned\x07\x1b[2J  v1.0\n\n")
    for number in range(server.option("lines", 0)):
        server.raw(b"banner line %d\n" % number)
    server.run()
