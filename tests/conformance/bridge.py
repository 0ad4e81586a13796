"""A way from HTTP to ``kage mcp serve``, which speaks stdio: each session has a process of its own.

For the suite only: it knows no sign-in and no resumption. Requests without a handshake (2026-07-28)
share one process. Every id is changed on its way, so that clients cannot meet each other's.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

Json = dict[str, Any]  # of the wire
_SESSION = "mcp-session-id"
_REVISION = "mcp-protocol-version"
_VERSION = "io.modelcontextprotocol/protocolVersion"
_MODERN = "2026-07-28"
_NAMED = ("tools/call", "resources/read", "prompts/get")
_HOSTS = ("127.0.0.1", "localhost")
_BAD = (-32700, -32600, -32602, -32020, -32021, -32022)  # codes that are HTTP 400
_ANSWER_LIMIT = 30.0  # seconds
_END_LIMIT = 5.0


class Program:
    """One ``kage mcp serve`` and the requests that wait for it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[object, asyncio.Queue[Json]]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, argv: Sequence[str]) -> Program:
        """Start it; its stderr is ours."""
        pipe = asyncio.subprocess.PIPE
        made = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe, limit=32 << 20)
        return cls(made)

    async def ask(self, message: Json) -> AsyncGenerator[Json, None]:
        """Send a request and give what comes for it, its answer last."""
        number, queue = next(self._numbers), asyncio.Queue[Json]()
        self._waiting[number] = (message["id"], queue)
        try:
            await self.tell({**message, "id": number})
            async with asyncio.timeout(_ANSWER_LIMIT):
                while True:
                    found = await queue.get()
                    yield found
                    if "method" not in found:
                        return
        finally:
            del self._waiting[number]

    async def tell(self, message: Json) -> None:
        """Send a message nobody waits for an answer to."""
        if message.get("method") == "notifications/cancelled":
            message = {**message, "params": self._meant(message.get("params") or {})}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        await self._process.stdin.drain()

    async def end(self) -> None:
        """Close its input and wait until it is gone."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(_END_LIMIT):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reading

    def _meant(self, params: Json) -> Json:
        for number, (given, _) in self._waiting.items():
            if given == params.get("requestId"):
                return {**params, "requestId": number}
        return params

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            message = json.loads(line)
            number = message.get("id")
            if "method" not in message and number in self._waiting:
                given, queue = self._waiting[number]
                queue.put_nowait({**message, "id": given})
            else:
                for _, queue in tuple(self._waiting.values())[-1:]:  # for the latest request
                    queue.put_nowait(message)


class Bridge:
    """The HTTP side.

    Args:
        argv: What is started for each session.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = argv
        self._sessions: dict[str, Program] = {}
        self._shared: Program | None = None
        self._starting = asyncio.Lock()
        methods = ["POST", "GET", "DELETE"]
        self.app = Starlette(routes=[Route("/mcp", self._serve, methods=methods)])

    async def end(self) -> None:
        """End every process."""
        programs = [*self._sessions.values()]
        if self._shared is not None:
            programs.append(self._shared)
        await asyncio.gather(*(program.end() for program in programs))

    async def _serve(self, request: Request) -> Response:
        origin = urlsplit(request.headers.get("origin", "http://localhost")).hostname
        if request.url.hostname not in _HOSTS or origin not in _HOSTS:
            return Response(status_code=403)  # a page elsewhere, by way of a name it rebinds
        if request.method == "GET":
            return Response(status_code=405, headers={"Allow": "POST, DELETE"})
        if request.method == "DELETE":
            program = self._sessions.pop(request.headers.get(_SESSION, ""), None)
            if program is None:
                return Response(status_code=404)
            await program.end()
            return Response(status_code=204)
        try:
            message = json.loads(await request.body())
        except ValueError:
            return JSONResponse(_error(None, -32700, "Parse error"), status_code=400)
        if not isinstance(message, dict):
            return JSONResponse(_error(None, -32600, "Invalid Request"), status_code=400)
        return await self._pass(message, request)

    async def _pass(self, message: Json, request: Request) -> Response:
        headers: dict[str, str] = {}
        modern = _is_modern(message, request.headers)
        if modern:
            if (wrong := _mismatch(message, request.headers)) is not None:
                return JSONResponse(wrong, status_code=400)
            program = await self._common()
        elif message.get("method") == "initialize":
            program = await Program.start(self._argv)
            headers[_SESSION] = uuid.uuid4().hex
            self._sessions[headers[_SESSION]] = program
        else:
            session = request.headers.get(_SESSION)
            if session is None:
                wrong = _error(message.get("id"), -32600, "There is no session")
                return JSONResponse(wrong, status_code=400)
            if session not in self._sessions:
                return JSONResponse(
                    _error(message.get("id"), -32001, "Session not found"), status_code=404
                )
            program = self._sessions[session]
        if "id" not in message or "method" not in message:
            await program.tell(message)
            return Response(status_code=202, headers=headers)
        answers = program.ask(message)
        first = await anext(answers)
        if "method" in first:
            return StreamingResponse(
                _events(first, answers), headers=headers, media_type="text/event-stream"
            )
        await answers.aclose()
        status = _status(first.get("error", {}).get("code")) if modern else 200
        return JSONResponse(first, status_code=status, headers=headers)

    async def _common(self) -> Program:
        async with self._starting:
            if self._shared is None:
                self._shared = await Program.start(self._argv)
            return self._shared


def _status(code: int | None) -> int:
    if code == -32601:
        return 404
    return 400 if code in _BAD else 200


def _is_modern(message: Json, headers: Mapping[str, str]) -> bool:
    if _VERSION in _meta(message):
        return True
    bare = _SESSION not in headers and message.get("method") != "initialize"
    return headers.get(_REVISION, "") >= _MODERN or (
        bare and message.get("method") == "server/discover"
    )


def _mismatch(message: Json, headers: Mapping[str, str]) -> Json | None:
    """Check the headers that repeat the message, which is the carrier's part of 2026-07-28."""
    params = message.get("params")
    meant = {
        _REVISION: _meta(message).get(_VERSION),
        "mcp-method": message.get("method"),
        "mcp-name": _subject(params) if message.get("method") in _NAMED else None,
    }
    for header, value in meant.items():
        if isinstance(value, str) and headers.get(header) != value:
            text = f"The header {header} does not say what the message says"
            return _error(message.get("id"), -32020, text)
    return None


def _subject(params: object) -> object:
    return params.get("name", params.get("uri")) if isinstance(params, dict) else None


def _meta(message: Json) -> Json:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) else {}


async def _events(first: Json, rest: AsyncIterator[Json]) -> AsyncIterator[str]:
    yield _event(first)
    async for message in rest:
        yield _event(message)


def _event(message: Json) -> str:
    return f"event: message\ndata: {json.dumps(message)}\n\n"


def _error(number: object, code: int, text: str) -> Json:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave ctrl+c to whoever runs the bridge."""
        yield


@asynccontextmanager
async def bridge(argv: Sequence[str]) -> AsyncIterator[str]:
    """Serve ``argv`` over HTTP on a free port; gives the url."""
    made = Bridge(argv)
    config = uvicorn.Config(made.app, host="127.0.0.1", port=0, log_level="warning", ws="none")
    server = _Server(config)
    serving = asyncio.create_task(server.serve())
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.02)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_LIMIT):
                await serving
        await made.end()


async def _stay(argv: Sequence[str]) -> None:
    async with bridge(argv) as url:
        print(url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_stay(sys.argv[1:]))
