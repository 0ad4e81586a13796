"""A tool server that is only a loop over JSON lines: what the job costs without any care."""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Answer until the end of the input."""
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message:
            continue
        result: dict[str, object] = {}
        if message["method"] == "initialize":
            result = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "bare", "version": "1"},
            }
        elif message["method"] == "tools/call":
            with open(message["params"]["arguments"]["path"], encoding="utf-8") as file:
                result = {"content": [{"type": "text", "text": file.read()}]}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


main()
