"""Answers the handshake with a revision nobody speaks: ``--says`` (1999-01-01)."""

from __future__ import annotations

import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import HANDSHAKE, Json, Server

server = Server("wrong_version", revisions=HANDSHAKE)
answer = server.on["initialize"]


def initialize(params: Json, message: Json) -> Json | None:
    return {
        **(answer(params, message) or {}),
        "protocolVersion": server.option("says", "1999-01-01"),
    }


server.on["initialize"] = initialize

if __name__ == "__main__":
    server.run()
