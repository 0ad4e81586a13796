"""A small synchronous MCP server over stdio, made to be bent: standard library, starts in 30 ms.

Speaks the four handshake revisions and the stateless one; ``--revisions`` narrows that. Options
every stub has: ``--record FILE`` (each message received, one JSON line), ``--revisions A,B``,
``--instructions TEXT``, ``--start-delay SECONDS``, ``--version TEXT``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from typing import Any

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
Json = dict[str, Any]


class RpcError(Exception):
    """Raised by a handler: becomes a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.answer: Json = {"code": code, "message": message}
        if data is not None:
            self.answer["data"] = data


class Call:
    """One ``tools/call`` under way; ``id`` is the request's."""

    def __init__(self, server: Server, message: Json) -> None:
        self.server = server
        self.id = message["id"]
        self.params: Json = message.get("params") or {}
        self._cancel = allocate_lock()
        self._cancel.acquire()

    def progress(self, progress: float, total: float | None = None, message: str = "") -> None:
        """Send progress, if the caller asked for it."""
        token = (self.params.get("_meta") or {}).get("progressToken")
        if token is not None:
            params = {"progressToken": token, "progress": progress, "total": total}
            self.server.notify("notifications/progress", {**params, "message": message})

    def sleep(self, seconds: float) -> bool:
        """Sleep; False when the call was cancelled meanwhile."""
        if self._cancel.acquire(timeout=seconds):
            self._cancel.release()
            return False
        return True

    def cancel(self) -> None:
        """Wake ``sleep``."""
        self._cancel.release()


class Server:
    """``on[method]`` answers a request: it takes (params, message) and gives a result or None."""

    def __init__(
        self,
        name: str,
        *,
        revisions: tuple[str, ...] = (*HANDSHAKE, MODERN),
        argv: list[str] | None = None,
    ) -> None:
        self.options = _options(sys.argv[1:] if argv is None else argv)
        self.name = name
        wanted = self.options.get("revisions")
        self.revisions = tuple(str(wanted).split(",")) if wanted else revisions
        self.tools: list[Json] = []
        self.calls: dict[Any, Call] = {}
        self.listeners: list[Any] = []  # ids of open subscriptions/listen requests
        self._runs: dict[str, tuple[Callable[[Json, Call], Any], bool]] = {}
        self._waiting: dict[Any, list[Any]] = {}
        self._write = allocate_lock()
        self.on: dict[str, Callable[[Json, Json], Json | None]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "subscriptions/listen": self._listen,
            "ping": lambda params, message: {},
            "tools/list": lambda params, message: {"tools": self.tools},
            "tools/call": self._call,
        }
        if not set(self.revisions) & set(HANDSHAKE):
            del self.on["initialize"], self.on["ping"]
        if MODERN not in self.revisions:
            del self.on["server/discover"], self.on["subscriptions/listen"]
        record = self.options.get("record")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._record = os.open(str(record), flags, 0o600) if record else -1

    def option(self, name: str, default: Any) -> Any:
        """Give ``--name VALUE`` as the type of ``default``; a flag alone is True."""
        value = self.options.get(name, default)
        return value if value is True or value is default else type(default)(value)

    def tool(
        self,
        name: str,
        run: Callable[[Json, Call], Any],
        *,
        properties: Json | None = None,
        threaded: bool = False,
        **more: Any,
    ) -> None:
        """Offer a tool; ``run`` gives text, or a whole result, or None for no answer."""
        schema = {"type": "object", "properties": properties or {}}
        self.tools.append({"name": name, "description": name, "inputSchema": schema, **more})
        self._runs[name] = (run, threaded)

    def raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        with self._write:
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]

    def send(self, message: Json) -> None:
        """Write one message."""
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification; a change notice goes to each listener where there are some."""
        if method.endswith("list_changed") and self.listeners:
            for listener in self.listeners:
                meta = {"_meta": {META + "subscriptionId": listener}}
                self.send({"method": method, "params": {**(params or {}), **meta}})
        else:
            self.send({"method": method, "params": params or {}})

    def request(self, method: str, params: Json, *, timeout: float = 30.0) -> Json:
        """Ask the client something (from a threaded tool); gives the whole answer."""
        request_id = f"ask-{len(self._waiting)}-{time.monotonic_ns()}"
        lock = allocate_lock()
        lock.acquire()
        self._waiting[request_id] = [lock, {}]
        self.send({"id": request_id, "method": method, "params": params})
        lock.acquire(timeout=timeout)
        answer: Json = self._waiting.pop(request_id)[1]
        return answer

    def run(self) -> None:
        """Serve until EOF."""
        time.sleep(float(self.options.get("start-delay", 0)))
        for line in sys.stdin.buffer:
            if self._record >= 0:
                os.write(self._record, line)
            if line.strip():
                self.receive(json.loads(line))

    def once_there(self, path: str, act: Callable[[], object]) -> None:
        """Do something beside the serving as soon as a file is there; ``.done`` tells the end."""

        def wait() -> None:
            while not os.path.exists(path):
                time.sleep(0.01)
            act()
            os.close(os.open(f"{path}.done", os.O_CREAT | os.O_WRONLY, 0o600))

        start_new_thread(wait, ())

    def receive(self, message: Json) -> None:
        """Take one message."""
        request_id, method = message.get("id"), message.get("method")
        params = message.get("params") or {}
        if method is None:
            if request_id in self._waiting:
                self._waiting[request_id][1] = message
                self._waiting[request_id][0].release()
        elif request_id is None:
            call = self.calls.pop(params.get("requestId"), None)
            if method == "notifications/cancelled" and call is not None:
                call.cancel()
        elif method not in self.on:
            error = {"code": -32601, "message": f"Method not found: {method}"}
            self.send({"id": request_id, "error": error})
        else:
            self.answer(message, lambda: self.on[str(method)](params, message))

    def answer(self, message: Json, make: Callable[[], Json | None]) -> None:
        """Send what ``make`` gives, as a result or an error; None sends nothing."""
        try:
            result = make()
        except RpcError as error:
            self.send({"id": message["id"], "error": error.answer})
            return
        if result is None:
            return
        meta = (message.get("params") or {}).get("_meta") or {}
        if META + "protocolVersion" in meta:
            result = {"resultType": "complete", **result}
            if not message["method"].startswith("tools/call"):
                result = {"ttlMs": 0, "cacheScope": "private", **result}
        self.send({"id": message["id"], "result": result})

    def _info(self) -> Json:
        info: Json = {"capabilities": {"tools": {"listChanged": True}, "logging": {}}}
        if "instructions" in self.options:
            info["instructions"] = self.options["instructions"]
        return info

    def _initialize(self, params: Json, message: Json) -> Json:
        known = [version for version in self.revisions if version != MODERN]
        asked = params.get("protocolVersion")
        version = asked if asked in known else known[-1]
        server = {"name": self.name, "version": self.option("version", "1.0")}
        return {"protocolVersion": version, "serverInfo": server, **self._info()}

    def _discover(self, params: Json, message: Json) -> Json:
        server = {"name": self.name, "version": self.option("version", "1.0")}
        meta = {META + "serverInfo": server}
        return {"supportedVersions": [MODERN], "_meta": meta, **self._info()}

    def _listen(self, params: Json, message: Json) -> None:
        self.listeners.append(message["id"])
        agreed = {"notifications": params.get("notifications", {})}
        meta = {"_meta": {META + "subscriptionId": message["id"]}}
        self.notify("notifications/subscriptions/acknowledged", {**agreed, **meta})

    def _call(self, params: Json, message: Json) -> Json | None:
        name = params.get("name")
        if name not in self._runs:
            raise RpcError(-32602, f"Unknown tool: {name}")
        run, threaded = self._runs[str(name)]
        call = self.calls[message["id"]] = Call(self, message)

        def work() -> Json | None:
            try:
                return _result(run(params.get("arguments") or {}, call))
            finally:
                self.calls.pop(call.id, None)

        if not threaded:
            return work()
        start_new_thread(self.answer, (message, work))
        return None


def _result(value: Any) -> Json | None:
    if isinstance(value, str):
        return {"content": [{"type": "text", "text": value}]}
    return value if value is None or isinstance(value, dict) else _result(json.dumps(value))


def _options(argv: list[str]) -> Json:
    """Read ``--key value``, ``--key=value`` and ``--flag``."""
    options: Json = {}
    words = iter(range(len(argv)))
    for index in words:
        key, _, value = argv[index].removeprefix("--").partition("=")
        if value:
            options[key] = value
        elif index + 1 < len(argv) and not argv[index + 1].startswith("--"):
            options[key] = argv[next(words)]
        else:
            options[key] = True
    return options
