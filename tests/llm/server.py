"""The loopback HTTP server behind a scripted model, on a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from tests.llm.script import Drop, Fail, Hold, Pause, Piece, Request, Script, Turn
from tests.llm.wires import error_body, events

_MAX_BODY = 256 << 20


class ScriptedModel:
    """Answers model requests with ``turns`` in order, and remembers every request.

    ``base_url`` is what ``ANTHROPIC_BASE_URL`` takes, ``openai_url`` what ``OPENAI_BASE_URL``
    takes. ``then`` answers when the script is used up; without it that is an error (418).
    ``unused`` tells whether turns are left. ``on_request`` is called on the server's thread;
    listings wait for ``models_wait``.
    """

    def __init__(
        self,
        turns: Sequence[Turn] = (),
        *,
        then: Turn | None = None,
        models: Sequence[str | Mapping[str, Any]] = ("scripted",),
        port: int = 0,
        on_request: Callable[[Request], None] | None = None,
        models_wait: threading.Event | None = None,
    ) -> None:
        self.requests: list[Request] = []  # those that asked the model
        self.others: list[Request] = []  # listings and whatever else came
        self._script = Script(turns, then)
        self._models = models
        self._port = port
        self._on_request = on_request
        self._models_wait = models_wait
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    @property
    def base_url(self) -> str:
        """The address without ``/v1``."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def openai_url(self) -> str:
        """The address with ``/v1``."""
        return f"{self.base_url}/v1"

    @property
    def unused(self) -> int:
        """How many turns of the script were not asked for."""
        return max(0, len(self._script.turns) - self._script.used)

    def environ(self, wire: str = "anthropic") -> dict[str, str]:
        """Give the variables that make kage use this model."""
        if wire == "anthropic":
            return {"ANTHROPIC_BASE_URL": self.base_url, "ANTHROPIC_API_KEY": "sk-ant-loopback"}
        return {"OPENAI_BASE_URL": self.openai_url, "OPENAI_API_KEY": "sk-loopback"}

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._main, name="scripted-model")
        self._thread.start()
        self._ready.wait(20)
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed already
                loop.call_soon_threadsafe(stop.set)
        if self._thread is not None:
            self._thread.join(20)
            assert not self._thread.is_alive(), "the scripted model did not stop"

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went away, or the server stops
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = await self._read(reader, writer.get_extra_info("peername")[1])
        if request is None:
            return False
        if not request.wire:
            self.others.append(request)
            while self._models_wait is not None and not self._models_wait.is_set():
                await asyncio.sleep(0.01)
            status, body = self._plain(request)
            await _send(writer, status, body)
            return True
        self.requests.append(request)
        if self._on_request is not None:
            self._on_request(request)
        pieces = self._script.next(request)
        for piece in pieces:
            if isinstance(piece, Fail):
                shaped = json.dumps(error_body(request.wire, piece.kind, piece.message)).encode()
                found = shaped if piece.body is None else piece.body
                await _send(writer, piece.status, found, piece.headers)
                return True
        return await self._stream(writer, request, pieces)

    async def _read(self, reader: asyncio.StreamReader, peer: int) -> Request | None:
        line = (await reader.readline()).decode("latin-1").split()
        if len(line) < 2:
            return None
        headers: dict[str, str] = {}
        while header := (await reader.readline()).decode("latin-1").strip():
            name, _, value = header.partition(":")
            headers[name.strip().lower()] = value.strip()
        size = int(headers.get("content-length", "0"))
        assert size <= _MAX_BODY
        data = await reader.readexactly(size)
        path = line[1]
        wire = ""
        if line[0] == "POST":
            if path.endswith("/messages"):
                wire = "anthropic"
            elif path.endswith("/chat/completions"):
                wire = "openai"
        return Request(
            wire=wire,
            method=line[0],
            path=path,
            headers=headers,
            body=json.loads(data) if data else {},
            size=size,
            number=len(self.requests) + 1,
            peer=peer,
        )

    def _plain(self, request: Request) -> tuple[int, bytes]:
        if request.method == "GET" and request.path.split("?")[0].endswith("/models"):
            named = [{"id": m} if isinstance(m, str) else dict(m) for m in self._models]
            data = [{"object": "model", "type": "model", **model} for model in named]
            return 200, json.dumps({"object": "list", "data": data, "has_more": False}).encode()
        return 404, json.dumps(error_body("", "not_found_error", "no such path")).encode()

    async def _stream(
        self, writer: asyncio.StreamWriter, request: Request, pieces: list[Piece]
    ) -> bool:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for step in events(request, pieces):
            match step:
                case bytes():
                    writer.write(b"%x\r\n%s\r\n" % (len(step), step) if step else b"")
                    await writer.drain()
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case Hold(event):
                    while not event.is_set():
                        await asyncio.sleep(0.01)
                case Drop():
                    writer.transport.close()  # flushes what was said, no last chunk
                    return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


async def _send(
    writer: asyncio.StreamWriter,
    status: int,
    body: bytes,
    headers: Mapping[str, str] | None = None,
) -> None:
    head = [f"HTTP/1.1 {status} Scripted", f"content-length: {len(body)}"]
    named = {"content-type": "application/json", **(headers or {})}
    head += [f"{name}: {value}" for name, value in named.items()]
    writer.write("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body)
    await writer.drain()
