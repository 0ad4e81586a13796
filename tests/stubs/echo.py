"""Does everything right: echo, add, env, where, sleep, fail, progress, long, exit."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import Call, Json, Server

server = Server("echo")
text = {"text": {"type": "string"}}
number = {"type": "number"}


def env(arguments: Json, call: Call) -> str:
    names = arguments.get("names") or sorted(os.environ)
    return "\n".join(f"{name}={os.environ.get(name, '')}" for name in names)


def sleep(arguments: Json, call: Call) -> str | None:
    return "slept" if call.sleep(float(arguments.get("seconds", 1))) else None


def fail(arguments: Json, call: Call) -> Json:
    content = [{"type": "text", "text": arguments.get("text", "failed")}]
    return {"content": content, "isError": True}


def progress(arguments: Json, call: Call) -> str | None:
    steps = int(arguments.get("steps", 3))
    for step in range(1, steps + 1):
        if not call.sleep(float(arguments.get("pause", 0))):
            return None
        call.progress(step, steps, f"step {step}")
    return f"{steps} steps"


def leave(arguments: Json, call: Call) -> str:
    os._exit(int(arguments.get("code", 0)))


server.tool("echo", lambda arguments, call: str(arguments.get("text", "")), properties=text)
server.tool(
    "add",
    lambda arguments, call: str(arguments["a"] + arguments["b"]),
    properties={"a": number, "b": number},
)
server.tool("env", env, properties={"names": {"type": "array"}})
server.tool("where", lambda arguments, call: [os.getcwd(), os.getpid(), *sys.argv])
server.tool("sleep", sleep, properties={"seconds": number}, threaded=True)
server.tool("fail", fail, properties=text)
server.tool("progress", progress, properties={"steps": number, "pause": number}, threaded=True)
server.tool("long", lambda arguments, call: "x" * int(arguments.get("size", 1000)))
server.tool("exit", leave, properties={"code": number})

if __name__ == "__main__":
    server.run()
