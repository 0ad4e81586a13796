"""The least a print run can be: servers, model and calls by hand, nothing kept, nobody asked.

``floor_run.py URL SERVER...``, each server an argv as JSON; prints the model's last text.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

Json = dict[str, Any]


class Server:
    """One tool server."""

    def __init__(self, argv: list[str]) -> None:
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = 0

    def send(self, method: str, params: Json, *, answered: bool = True) -> None:
        """Send a request, or a notification."""
        self.number += 1
        message: Json = {"jsonrpc": "2.0", "method": method, "params": params}
        if answered:
            message["id"] = self.number
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self) -> Json:
        """Read one result."""
        assert self.process.stdout is not None
        result: Json = json.loads(self.process.stdout.readline())["result"]
        return result


def ask(link: http.client.HTTPConnection, tools: list[Json], messages: list[Json]) -> list[Json]:
    """Ask the model and put its streamed blocks together."""
    body = {"model": "m", "max_tokens": 1000, "stream": True, "tools": tools, "messages": messages}
    link.request("POST", "/v1/messages", json.dumps(body), {"content-type": "application/json"})
    blocks: list[Json] = []
    pieces: list[str] = []
    for line in link.getresponse().read().decode().splitlines():
        if not line.startswith("data:"):
            continue
        event = json.loads(line[5:])
        if event["type"] == "content_block_start":
            blocks.append(event["content_block"])
            pieces = []
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            pieces.append(delta.get("text") or delta.get("partial_json") or "")
        elif event["type"] == "content_block_stop":
            if blocks[-1]["type"] == "text":
                blocks[-1]["text"] = "".join(pieces)
            else:
                blocks[-1]["input"] = json.loads("".join(pieces) or "{}")
    return blocks


def main(url: str, argvs: list[str]) -> None:
    """Run until the model asks for nothing."""
    servers = [Server(json.loads(argv)) for argv in argvs]
    hello = {"protocolVersion": "2025-11-25", "capabilities": {},
             "clientInfo": {"name": "floor", "version": "1"}}  # fmt: skip
    for server in servers:
        server.send("initialize", hello)
    owners: dict[str, tuple[Server, str]] = {}
    tools: list[Json] = []
    for number, server in enumerate(servers):
        server.hear()
        server.send("notifications/initialized", {}, answered=False)
        server.send("tools/list", {})
        for tool in server.hear()["tools"]:
            name = f"s{number}__{tool['name']}"
            owners[name] = (server, tool["name"])
            tools.append({"name": name, "input_schema": tool["inputSchema"]})
    address = urlsplit(url)
    link = http.client.HTTPConnection(address.hostname or "", address.port)
    messages: list[Json] = [{"role": "user", "content": "go"}]
    while True:
        blocks = ask(link, tools, messages)
        messages.append({"role": "assistant", "content": blocks})
        calls = [block for block in blocks if block["type"] == "tool_use"]
        if not calls:
            print("".join(block.get("text", "") for block in blocks))
            break
        results: list[Json] = []
        for call in calls:
            server, name = owners[call["name"]]
            server.send("tools/call", {"name": name, "arguments": call["input"]})
            results.append({"type": "tool_result", "tool_use_id": call["id"],
                            "content": server.hear()["content"]})  # fmt: skip
        messages.append({"role": "user", "content": results})
    for server in servers:
        assert server.process.stdin is not None
        server.process.stdin.close()
    for server in servers:
        server.process.wait()


main(sys.argv[1], sys.argv[2:])
