"""Chatters on stderr: ``--lines`` at start (1000), ``--long``, ``--bytes`` that are no UTF-8.

``--on FILE``: not at the start but once that is there.
"""

from __future__ import annotations

import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Call, Json, Server

server = Server("noisy")


def shout(arguments: Json, call: Call) -> str:
    make_noise(int(arguments.get("lines", 1000)))
    return "shouted"


def make_noise(lines: int) -> None:
    if server.option("long", False):
        sys.stderr.buffer.write(b"x" * 1_000_000 + b"\n")
    if server.option("bytes", False):
        sys.stderr.buffer.write(b"\xff\xfe\x1b[31mred\x1b[0m\n")
    for start in range(0, lines, 1000):
        block = range(start, min(start + 1000, lines))
        sys.stderr.buffer.write(b"".join(b"noise %d\n" % number for number in block))
    sys.stderr.buffer.flush()


server.tool("shout", shout, properties={"lines": {"type": "integer"}})
server.tool("echo", lambda arguments, call: str(arguments.get("text", "")))

if __name__ == "__main__":
    noise = server.option("lines", 1000)
    if "on" in server.options:
        server.once_there(server.options["on"], lambda: make_noise(noise))
    else:
        make_noise(noise)
    server.run()
