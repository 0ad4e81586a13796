"""Works on its first start and breaks on later ones; ``--counter FILE`` counts the starts."""

from __future__ import annotations

import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Server

server = Server("restart_breaks")
server.tool("echo", lambda arguments, call: str(arguments.get("text", "")))


def starts() -> int:
    """Count this start too."""
    with open(server.options["counter"], "a+") as file:
        file.write("x")
        return file.tell()


if __name__ == "__main__":
    count = starts()
    # --works N: how many starts work; --again M: from start M on it works again
    if count > server.option("works", 1) and count < server.option("again", 1 << 30):
        print("cannot open the database: it is locked", file=sys.stderr)
        sys.exit(server.option("code", 4))
    server.run()
