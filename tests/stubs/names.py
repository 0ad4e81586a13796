"""Offers tools with duplicate, illegal, long, empty, reserved and unicode names."""

from __future__ import annotations

import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Server

server = Server("names")
NAMES = [
    "plain",
    "plain",
    "with space",
    "with/slash.and.dot",
    "double__underscore",
    "x" * 200,
    "x" * 199 + "y",
    "",
    " ",
    "größe",
    "天気",
    "\u202eevil\u200b",
    "\x1b[31mred",
    "bash",
    "Plain",
    "a\nb",
    "[@click=app.quit]x[/]",
    "__proto__",
    "-dash",
]
for index, name in enumerate(NAMES):
    server.tool(name, lambda arguments, call, index=index: f"tool {index}")  # type: ignore[misc]

if __name__ == "__main__":
    server.run()
