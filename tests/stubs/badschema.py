"""Offers good tools among invalid ones: no schema, wrong types, no name, not an object."""

from __future__ import annotations

import sys
from typing import Any

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Server

server = Server("badschema")
server.tool("good", lambda arguments, call: "good")
GOOD = {"type": "object", "properties": {}}
BAD: list[Any] = [
    {"name": "no_schema"},
    {"name": "empty_schema", "inputSchema": {}},
    {"name": "text_schema", "inputSchema": "object"},
    {"name": "null_schema", "inputSchema": None},
    {"name": "array_root", "inputSchema": {"type": "array"}},
    {"name": "odd_type", "inputSchema": {"type": "object", "properties": {"a": {"type": "int"}}}},
    {"name": "odd_properties", "inputSchema": {"type": "object", "properties": ["a"]}},
    {"name": "remote_ref", "inputSchema": {"$ref": "http://127.0.0.1:9/schema.json"}},
    {"name": "deep", "inputSchema": {"type": "object", "properties": {"a": {}}}},
    {"name": None, "inputSchema": GOOD},
    {"name": 7, "inputSchema": GOOD},
    {"inputSchema": GOOD},
    {"name": "odd_description", "description": ["a"], "inputSchema": GOOD},
    {"name": "odd_annotations", "annotations": "readOnly", "inputSchema": GOOD},
    "not an object",
    None,
    {"name": "odd_output", "inputSchema": GOOD, "outputSchema": "text"},
]
server.tools += BAD
inner = BAD[8]["inputSchema"]["properties"]
for _ in range(120):
    inner["a"] = {"type": "object", "properties": {"a": {}}}
    inner = inner["a"]["properties"]
server.tool("last", lambda arguments, call: "last")

if __name__ == "__main__":
    server.run()
