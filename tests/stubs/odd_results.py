"""Answers calls in ways no server should; the tool ``odd`` takes which one as ``how``."""

from __future__ import annotations

import json
import sys
import time

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Call, Json, Server

server = Server("odd_results")
OK = {"resultType": "complete", "content": [{"type": "text", "text": "ok"}]}


def odd(arguments: Json, call: Call) -> Json | None:
    how = arguments.get("how", "null")
    answer: Json = {"id": call.id, "result": OK}
    match how:
        case "null" | "list" | "text" | "number":
            values: Json = {"null": None, "list": [1], "text": "done", "number": 7}
            answer["result"] = values[how]
        case "string_id":
            answer["id"] = str(call.id)
        case "wrong_id":
            answer["id"] = 999_999
        case "unknown_content":
            answer["result"] = {**OK, "content": [{"type": "hologram", "data": "x"}]}
        case "bad_content":
            answer["result"] = {**OK, "content": [{"type": "text"}, "bare"]}
        case "no_content":
            answer["result"] = {"resultType": "complete"}
        case "deep":
            key = json.dumps(call.id)
            nest = "[" * 100_000 + "]" * 100_000
            server.raw(f'{{"jsonrpc":"2.0","id":{key},"result":{{"content":{nest}}}}}\n'.encode())
            return None
        case "nan":
            answer["result"] = {**OK, "structuredContent": {"value": float("nan")}}
        case "twice":
            server.send(answer)
        case "late":
            call.sleep(float(arguments.get("seconds", 2)))
            time.sleep(0.2)
        case "batch":
            server.raw(json.dumps([{"jsonrpc": "2.0", **answer}]).encode() + b"\n")
            return None
        case "bad_error":
            answer = {"id": call.id, "error": "it broke"}
        case "error":
            answer = {"id": call.id, "error": {"code": -32000, "message": "\x1b[2Jboom"}}
        case "both":
            answer["error"] = {"code": 1, "message": "both"}
        case "no_jsonrpc":
            server.raw(json.dumps({**answer, "jsonrpc": "1.0"}).encode() + b"\n")
            return None
        case "cut":
            server.raw(json.dumps({"jsonrpc": "2.0", **answer}).encode()[:-9] + b"\n")
            return None
    server.send(answer)
    return None


server.tool("odd", odd, properties={"how": {"type": "string"}}, threaded=True)
server.tool("echo", lambda arguments, call: str(arguments.get("text", "")))

if __name__ == "__main__":
    server.run()
