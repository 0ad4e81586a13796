"""A client that writes raw lines to a served process and reads its answers."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.waiting import DEADLINE

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "peer", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


class Peer:
    """Starts the launcher with ``options`` and talks to it; kills it at the end if it must."""

    def __init__(self, **options: Any) -> None:
        self.start("tests.mcp.server.launcher", json.dumps(options, default=str))

    def start(self, *words: str, cwd: Path | None = None) -> None:
        """Start ``python -m`` with ``words``."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
        )
        self._lines: deque[bytes] = deque()
        self._begun: list[bytes] = []  # the pieces of the next line
        self._next = 100

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        self.raw(json.dumps(message).encode() + b"\n")

    @property
    def pending(self) -> bool:
        """Whether something was read that nobody took."""
        return bool(self._lines) or any(self._begun)

    def line(self, deadline: float = DEADLINE) -> bytes:
        """Give the next line; b"" at the end of output."""
        assert self.process.stdout is not None
        end = time.monotonic() + deadline
        while not self._lines:
            left = end - time.monotonic()
            assert left > 0, "no answer"
            if select.select([self.process.stdout], [], [], left)[0]:
                chunk = os.read(self.process.stdout.fileno(), 1 << 20)
                *whole, rest = chunk.split(b"\n")
                if whole:
                    whole[0] = b"".join((*self._begun, whole[0]))
                    self._begun.clear()
                self._begun.append(rest)
                self._lines.extend(whole)
                if not chunk:
                    rest = b"".join(self._begun)
                    self._begun.clear()
                    return rest
        return self._lines.popleft()

    def receive(self, deadline: float = DEADLINE) -> dict[str, Any]:
        line = self.line(deadline)
        assert line, f"the server left: {self.stderr()}"
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def post(self, method: str, params: Any = None, id_: Any = None) -> Any:
        """Send a request and give its id."""
        if id_ is None:
            self._next += 1
            id_ = self._next
        message = {"jsonrpc": "2.0", "id": id_, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        return id_

    def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        """Send a request and give the answer, which must be the next message."""
        id_ = self.post(method, params)
        answer = self.receive()
        assert answer["id"] == id_, answer
        return answer

    def result(self, method: str, params: Any = None) -> dict[str, Any]:
        answer = self.ask(method, params)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def error(self, method: str, params: Any = None) -> dict[str, Any]:
        answer = self.ask(method, params)
        assert "error" in answer, answer
        error: dict[str, Any] = answer["error"]
        return error

    def hello(self, revision: str = "2025-06-18", **capabilities: Any) -> dict[str, Any]:
        """Shake hands."""
        result = self.result(
            "initialize",
            {
                "protocolVersion": revision,
                "capabilities": capabilities,
                "clientInfo": {"name": "peer", "version": "1"},
            },
        )
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        return self.result("tools/call", {"name": tool, "arguments": arguments})

    def modern(self, method: str, /, **params: Any) -> dict[str, Any]:
        """Ask in 2026-07-28; the envelope is added."""
        return self.ask(method, {"_meta": ENVELOPE, **params})

    def finish(self, deadline: float = DEADLINE) -> int:
        """Close the input and wait for the exit."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(deadline)

    def stderr(self) -> str:
        assert self.process.stderr is not None
        self.process.kill()
        return self.process.stderr.read().decode()


class Served(Peer):
    """Talks to the command itself: ``kage mcp serve`` with ``flags``, started in ``cwd``."""

    def __init__(self, cwd: Path, *flags: str) -> None:
        self.start("kage", "mcp", "serve", *flags, cwd=cwd)


class Kept:
    """A served process many tests talk to in turn; one that is not as it was is replaced."""

    def __init__(self) -> None:
        self._peer: Peer | None = None

    @contextmanager
    def lend(self, start: Callable[[], Peer]) -> Iterator[Peer]:
        """Give the kept one, or what ``start`` gives."""
        peer = self._peer or start()
        self._peer = None
        yield peer
        try:
            assert not peer.pending and peer.result("ping") == {}
            self._peer = peer
        except (AssertionError, OSError, ValueError):
            peer.__exit__(None, None, None)

    def close(self) -> None:
        """End it."""
        if self._peer is not None:
            self._peer.__exit__(None, None, None)


def text_of(result: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in result["content"] if part["type"] == "text")
