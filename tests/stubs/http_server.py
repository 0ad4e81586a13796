"""An MCP server over HTTP, made to be bent; prints its url on stdout's first line.

In a test: ``with serving("--json") as stub: stub.url``; it runs on threads of the test's own
process and is gone afterwards. ``stub.requests`` holds every HTTP request that came. Options,
besides those of ``base``:

    --json               answers as JSON, not as a stream of events
    --stateless          gives no session
    --old                speaks HTTP+SSE of 2024-11-05 only; --old-status N answers the first POST
    --token T            401 without ``Authorization: Bearer T``; ``stub.token`` may be changed
    --fault METHOD=HOW   what goes wrong with a JSON-RPC method (several with commas); for HOW see
                         ``Faults``; "GET" is the stream a client opens
    --endpoint URL       what --old names as its endpoint
    --tls FILE           speaks TLS with the certificate and key in this PEM file
    --port N

Tools: echo, ask (a form; unasked: on the client's stream), headers (those of its own request), add,
slow (seconds), progress (steps, gap), expire (forgets all sessions), drop_streams, mutate (adds a
tool and says so), fail, flood (count), fault (how).
"""

from __future__ import annotations

import gzip
import json
import os
import queue
import socket
import ssl
import struct
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.stubs.base import META, Call, Json, RpcError, Server

PATH = "/mcp"
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FORM: Json = {"message": "Who are you?", "requestedSchema": NAME}


class Handler(BaseHTTPRequestHandler):
    """One HTTP connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listener

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def handle(self) -> None:
        """Serve requests until the connection ends, however it ends."""
        self.server.sockets.add(self.connection)
        with suppress(OSError, ValueError):
            super().handle()
        self.server.sockets.discard(self.connection)

    def do_GET(self) -> None:
        """Open a stream of events."""
        self.note(b"")
        self.server.stub.get(self)

    def do_DELETE(self) -> None:
        """End a session."""
        self.note(b"")
        self.server.stub.delete(self)

    def do_POST(self) -> None:
        """Take a message."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.note(body)
        self.server.stub.post(self, body)

    def note(self, body: bytes) -> None:
        """Remember the request."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = {"method": self.command, "path": self.path, "headers": headers}
        self.server.stub.requests.append({**request, "body": body})

    def reply(
        self, status: int, body: bytes = b"", kind: str = "application/json", **headers: str
    ) -> None:
        """Answer with a body that is whole."""
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        if body:
            self.send_header("content-type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def begin_events(self, **headers: str) -> None:
        """Begin a stream of events."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        """Send one chunk."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def event(self, data: str, *, name: str = "message", id: str = "") -> None:
        """Send one event."""
        line = f"id: {id}\n" if id else ""
        self.chunk(f"{line}event: {name}\ndata: {data}\n\n".encode())


class Listener(ThreadingHTTPServer):
    """Listens on loopback; one thread per connection."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, stub: HttpStub, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.stub = stub
        self.sockets: set[socket.socket] = set()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients go away when they like."""


class Faults:
    """Ways an HTTP answer can go wrong; ``how`` is a method's name, with ``:`` an argument."""

    def __init__(self, stub: HttpStub) -> None:
        self._stub = stub

    def act(self, how: str, handler: Handler, message: Json) -> bool:
        """Do it; False when the message is to be answered all the same."""
        name, _, argument = how.partition(":")
        if name.isdigit():
            handler.reply(int(name), (argument or f"status {name}").encode(), "text/plain")
            return True
        return getattr(self, name)(handler, message, argument) is not False

    def _answer(self, message: Json, text: str = "whole") -> bytes:
        result = {"content": [{"type": "text", "text": text}], "resultType": "complete"}
        return json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}).encode()

    def _head(self, handler: Handler, *lines: str, kind: str = "application/json") -> None:
        head = ["HTTP/1.1 200 OK", f"content-type: {kind}", *lines, "", ""]
        handler.wfile.write("\r\n".join(head).encode())
        handler.close_connection = True

    def cut(self, handler: Handler, message: Json, argument: str) -> None:
        """End in the middle of a JSON body."""
        body = self._answer(message)
        self._head(handler, f"content-length: {len(body)}")
        handler.wfile.write(body[: len(body) // 2])

    def bad_chunk(self, handler: Handler, message: Json, argument: str) -> None:
        """Send a chunk whose length is no number."""
        self._head(handler, "transfer-encoding: chunked")
        handler.wfile.write(b"zz\r\n" + self._answer(message) + b"\r\n")

    def reset(self, handler: Handler, message: Json, argument: str) -> None:
        """Reset the connection without an answer."""
        linger = struct.pack("ii", 1, 0)
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        handler.close_connection = True
        handler.connection.close()

    def hang_up(self, handler: Handler, message: Json, argument: str) -> None:
        """Close the connection without an answer."""
        handler.close_connection = True

    def hang(self, handler: Handler, message: Json, argument: str) -> None:
        """Never answer."""
        self._stub.stopping.wait(60)

    def huge(self, handler: Handler, message: Json, argument: str) -> None:
        """Send a JSON body of that many MiB."""
        size = int(argument or 40) << 20
        self._head(handler, f"content-length: {size}")
        handler.wfile.write(self._answer(message)[:-3])
        block = b"x" * (1 << 20)
        for _ in range(size >> 20):
            handler.wfile.write(block)

    def gzip_bomb(self, handler: Handler, message: Json, argument: str) -> None:
        """Send what unpacks to that many MiB."""
        packer = zlib.compressobj(wbits=31)
        block = b" " * (1 << 20)
        body = b"".join(packer.compress(block) for _ in range(int(argument or 500)))
        body += packer.compress(self._answer(message)) + packer.flush()
        self._head(handler, f"content-length: {len(body)}", "content-encoding: gzip")
        handler.wfile.write(body)

    def bad_gzip(self, handler: Handler, message: Json, argument: str) -> None:
        """Send plain text and call it gzip."""
        body = self._answer(message)
        self._head(handler, f"content-length: {len(body)}", "content-encoding: gzip")
        handler.wfile.write(body)

    def packed(self, handler: Handler, message: Json, argument: str) -> None:
        """Answer well, packed as the argument says (gzip, deflate, raw, br)."""
        body = self._answer(message)
        encoding = {"raw": "deflate", "": "gzip"}.get(argument, argument)
        raw = zlib.compressobj(wbits=-15)
        bodies = {"gzip": gzip.compress(body), "deflate": zlib.compress(body)}
        bodies["raw"] = raw.compress(body) + raw.flush()
        body = bodies.get(argument or "gzip", body)
        handler.reply(200, body, content_encoding=encoding)

    def drip(self, handler: Handler, message: Json, argument: str) -> None:
        """Keep a stream of events alive and never answer; ``drip:N``: every N seconds."""
        handler.begin_events()
        while not self._stub.stopping.wait(float(argument or 0.05)):
            handler.chunk(b": still here\n\n")

    def drip_json(self, handler: Handler, message: Json, argument: str) -> None:
        """Send a JSON body byte by byte, for ever."""
        self._head(handler, "content-length: 100000000")
        while not self._stub.stopping.wait(0.05):
            handler.wfile.write(b" ")

    def html(self, handler: Handler, message: Json, argument: str) -> None:
        """Answer with a web page."""
        handler.reply(200, b"<html><body>Welcome</body></html>", "text/html")

    def nothing(self, handler: Handler, message: Json, argument: str) -> None:
        """Accept the request and answer with nothing."""
        handler.reply(202)

    def garbage(self, handler: Handler, message: Json, argument: str) -> None:
        """Answer with a body that is no JSON."""
        handler.reply(200, b'{"jsonrpc": "2.0", "id"')

    def other_id(self, handler: Handler, message: Json, argument: str) -> None:
        """Answer another request."""
        handler.reply(200, self._answer({"id": 1}))

    def null_result(self, handler: Handler, message: Json, argument: str) -> None:
        """Answer with no result."""
        body = {"jsonrpc": "2.0", "id": message.get("id"), "result": None}
        handler.reply(200, json.dumps(body).encode())

    def big_head(self, handler: Handler, message: Json, argument: str) -> None:
        """Send a megabyte of headers."""
        self._head(handler, *(f"x-{n}: {'y' * 1000}" for n in range(1000)), "content-length: 0")

    def redirect(self, handler: Handler, message: Json, argument: str) -> None:
        """Redirect (307) to the argument, a path or an address; "loop" to itself."""
        target = handler.path if argument == "loop" else argument or f"{PATH}/moved"
        if target.startswith("//"):
            target = f"http:{target}"
        handler.reply(307, location=target)

    def sse_cut(self, handler: Handler, message: Json, argument: str) -> None:
        """End a stream of events without the answer."""
        handler.begin_events()
        handler.chunk(b": soon\n\n")
        handler.chunk(b"")
        handler.close_connection = True

    def resume(self, handler: Handler, message: Json, argument: str) -> None:
        """End the stream and have the client come back for the answer; "never": in vain."""
        self._stub.resumable = b"" if argument == "never" else self._answer(message, "resumed")
        handler.begin_events()
        handler.chunk(b"id: 1\nretry: 20\ndata:\n\n")
        handler.chunk(b"")

    def events(self, handler: Handler, message: Json, argument: str) -> None:
        """Send the argument, with {answer} and {other} filled in, byte by byte; then hang up."""
        other = json.dumps({"jsonrpc": "2.0", "id": 3, "result": {"content": []}})
        text = argument.replace("{answer}", self._answer(message).decode())
        body = text.replace("{other}", other).encode()
        self._head(handler, kind="text/event-stream")
        for place in range(len(body)):
            handler.wfile.write(body[place : place + 1])

    def sse_huge(self, handler: Handler, message: Json, argument: str) -> None:
        """Send an event of that many MiB."""
        handler.begin_events()
        handler.chunk(b"event: message\ndata: ")
        for _ in range(int(argument or 40)):
            handler.chunk(b"x" * (1 << 20))

    def sse_garbage(self, handler: Handler, message: Json, argument: str) -> None:
        """Send an event that is no message."""
        handler.begin_events()
        handler.event('{"jsonrpc": "2.0", "id"')

    def storm(self, handler: Handler, message: Json, argument: str) -> None:
        """End the client's stream at once and ask it to come back at once."""
        handler.begin_events()
        handler.chunk(b"retry: 0\n\n")
        handler.chunk(b"")


class Sink:
    """Where the messages about one POST go."""

    def __init__(self, stub: HttpStub, handler: Handler, *, as_json: bool, head: Json) -> None:
        self._stub = stub
        self._handler = handler
        self._json = as_json
        self._head = head
        self._begun = False
        self.answered = False

    def put(self, message: Json) -> None:
        """Send a message; the answer is the last one."""
        answer = "method" not in message
        if self._json:
            if answer:
                error = message.get("error") or {}
                status = 400 if error.get("code") in (-32022, -32602) and self._head else 200
                self._handler.reply(
                    200 if status == 200 else 400, json.dumps(message).encode(), **self._head
                )
        else:
            if not self._begun:
                self._handler.begin_events(**self._head)
                self._begun = True
            self._handler.event(json.dumps(message))
            if answer:
                self._handler.chunk(b"")
        self.answered = self.answered or answer


class HttpStub(Server):
    """The server; ``url`` is where it listens once it is started."""

    def __init__(self, *options: object) -> None:
        super().__init__("http", argv=[str(option) for option in options])
        self.requests: list[Json] = []
        self.sessions: dict[str, str] = {}
        self.token = str(self.options.get("token", ""))
        self.stopping = threading.Event()
        self.alive = False
        self.resumable = b""  # what a client that comes back is given
        self.faults = Faults(self)
        self.listening: list[Any] = []  # queues of open streams
        self._here = threading.local()
        self._listener = Listener(self, int(self.options.get("port", 0)))
        if "tls" in self.options:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(str(self.options["tls"]))
            self._listener.socket = context.wrap_socket(
                self._listener.socket, server_side=True, do_handshake_on_connect=False
            )
        wanted = str(self.options.get("fault", ""))
        self.planned = dict(pair.split("=", 1) for pair in wanted.split(",") if pair)
        self._add_tools()

    @property
    def url(self) -> str:
        """Its address."""
        host, port = self._listener.server_address[:2]
        scheme = "https" if "tls" in self.options else "http"
        return f"{scheme}://{host!s}:{port}{PATH}"

    @property
    def connections(self) -> set[socket.socket]:
        """The open connections of clients."""
        return set(self._listener.sockets)

    def start(self) -> None:
        """Begin to listen."""
        self.alive = True
        threading.Thread(
            target=self._listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def stop(self) -> None:
        """End everything."""
        self.stopping.set()
        self.drop_streams()
        if self.alive:
            self._listener.shutdown()
        self.alive = False
        self._listener.server_close()
        for connection in list(self._listener.sockets):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        if self._record >= 0:
            os.close(self._record)
            self._record = -1

    def seen(self, method: str = "", *, http: str = "") -> list[Json]:
        """Give the requests with a JSON-RPC method, or of an HTTP method."""
        if http:
            return [request for request in self.requests if request["method"] == http]
        messages = [(request, _loads(request["body"])) for request in self.requests]
        return [
            {**request, "message": message}
            for request, message in messages
            if message.get("method") == method
        ]

    def tool(self, name: str, run: Any, *, threaded: bool = False, **more: Any) -> None:
        """Offer a tool; each request has a thread anyway."""
        super().tool(name, run, threaded=False, **more)

    def drop_streams(self) -> None:
        """End every stream a client opened."""
        for stream in list(self.listening):
            stream.put(None)

    # ---- HTTP

    def post(self, handler: Handler, body: bytes) -> None:
        """Answer a POST."""
        message = _loads(body)
        if self._record >= 0:
            os.write(self._record, json.dumps(message).encode() + b"\n")
        if self._unauthorised(handler) or self._fault(handler, message):
            return
        if "old" in self.options:
            self._post_old(handler, message)
            return
        modern = "mcp-method" in handler.headers
        initial = message.get("method") in ("initialize", "server/discover")
        head: Json = {}
        if not modern and "stateless" not in self.options:
            if message.get("method") == "initialize":
                session = f"s{len(self.sessions) + 1}-{os.urandom(8).hex()}"
                self.sessions[session] = ""
                head = {"mcp_session_id": session}
            elif not initial and handler.headers.get("mcp-session-id") not in self.sessions:
                status = 404 if "mcp-session-id" in handler.headers else 400
                error = {"code": -32600, "message": "Session not found"}
                gone = {"jsonrpc": "2.0", "id": None, "error": error}
                handler.reply(status, json.dumps(gone).encode())
                return
        self._here.headers = dict(handler.headers.items())
        if "id" not in message or "method" not in message:
            self.receive(message)
            handler.reply(202)
            return
        sink = Sink(self, handler, as_json="json" in self.options, head=head)
        self._here.sink = sink
        try:
            self.receive(message)
            if not sink.answered:  # a subscription: it stays open
                self._stay(handler, sink)
        finally:
            self._here.sink = None

    def get(self, handler: Handler) -> None:
        """Open a stream for whatever the server says unasked."""
        if self._unauthorised(handler) or self._fault(handler, {"method": "GET"}):
            return
        if "last-event-id" in handler.headers:
            handler.begin_events()
            if self.resumable:
                handler.event(self.resumable.decode(), id="2")
            handler.chunk(b"")
            return
        if "old" in self.options:
            handler.begin_events()
            session = os.urandom(8).hex()
            default = f"{PATH}/messages?session_id={session}"
            handler.event(str(self.options.get("endpoint", default)), name="endpoint")
        elif handler.headers.get("mcp-session-id") not in self.sessions:
            handler.reply(405)
            return
        else:
            handler.begin_events()
        self._pour(handler)

    def delete(self, handler: Handler) -> None:
        """Forget a session."""
        self.sessions.pop(str(handler.headers.get("mcp-session-id")), None)
        handler.reply(200)

    def send(self, message: Json) -> None:
        """Send a message to whoever it is for."""
        message = {"jsonrpc": "2.0", **message}
        sink = getattr(self._here, "sink", None)
        broadcast = str(message.get("method", "")).endswith("list_changed")
        if sink is not None and not broadcast:
            sink.put(message)
            return
        for stream in list(self.listening):
            stream.put(message)

    # ---- inside

    def _pour(self, handler: Handler) -> None:
        stream: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
        self.listening.append(stream)
        try:
            while (message := stream.get()) is not None:
                handler.event(json.dumps(message))
            handler.chunk(b"")
        finally:
            self.listening.remove(stream)

    def _stay(self, handler: Handler, sink: Sink) -> None:
        stream: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
        self.listening.append(stream)
        try:
            while (message := stream.get()) is not None:
                sink.put(message)
        finally:
            self.listening.remove(stream)

    def _post_old(self, handler: Handler, message: Json) -> None:
        if not handler.path.startswith(f"{PATH}/messages"):
            handler.reply(
                int(self.options.get("old-status", 405)), b"Method Not Allowed", "text/plain"
            )
            return
        handler.reply(202)
        self._here.headers = dict(handler.headers.items())
        self._here.sink = None
        self.receive(message)

    def _unauthorised(self, handler: Handler) -> bool:
        if not self.token or handler.headers.get("authorization") == f"Bearer {self.token}":
            return False
        handler.reply(401, b"no entry", "text/plain", www_authenticate="Bearer")
        return True

    def _fault(self, handler: Handler, message: Json) -> bool:
        if handler.path.endswith("/moved"):
            return False
        params = message.get("params") or {}
        how = self.planned.get(str(message.get("method")), "")
        if message.get("method") == "tools/call" and params.get("name") == "fault":
            how = str((params.get("arguments") or {}).get("how"))
        return bool(how) and self.faults.act(how, handler, message)

    def _add_tools(self) -> None:
        def fault(arguments: Json, call: Call) -> str:
            return "whole"

        def slow(arguments: Json, call: Call) -> str:
            return "slept" if call.sleep(float(arguments.get("seconds", 1))) else "cancelled"

        def progress(arguments: Json, call: Call) -> str:
            steps = int(arguments.get("steps", 3))
            for step in range(steps):
                call.progress(step + 1, steps, f"step {step + 1}")
                call.sleep(float(arguments.get("gap", 0.02)))
            return "done"

        def expire(arguments: Json, call: Call) -> str:
            self.sessions.clear()
            return "gone"

        def drop(arguments: Json, call: Call) -> str:
            self.drop_streams()
            return "dropped"

        def mutate(arguments: Json, call: Call) -> str:
            self.tool(f"new{len(self.tools)}", fault)
            self.notify("notifications/tools/list_changed")
            return "changed"

        def flood(arguments: Json, call: Call) -> str:
            for number in range(int(arguments.get("count", 1000))):
                self.notify("notifications/message", {"level": "info", "data": "x" * 200})
                call.progress(number)
            return "flooded"

        def fail(arguments: Json, call: Call) -> str:
            raise RpcError(-32603, "it did not work")

        def ask(arguments: Json, call: Call) -> Json | str:
            if META + "protocolVersion" not in (call.params.get("_meta") or {}):
                if arguments.get("unasked"):  # on the stream the client opened
                    self._here.sink = None
                answer = self.request("elicitation/create", FORM)
                return json.dumps(answer.get("result", answer.get("error")), sort_keys=True)
            if "inputResponses" in call.params:
                return json.dumps(call.params["inputResponses"]["q"], sort_keys=True)
            question = {"method": "elicitation/create", "params": FORM}
            asked: Json = {"resultType": "input_required", "inputRequests": {"q": question}}
            return {**asked, "requestState": "s1"}

        def asks(arguments: Json, call: Call) -> Json | str:
            sink = self._here.sink
            try:
                return ask(arguments, call)
            finally:
                self._here.sink = sink

        self.tool("ask", asks)
        self.tool("echo", lambda arguments, call: str(arguments.get("text", "")))
        self.tool("headers", lambda arguments, call: json.dumps(self._here.headers))
        self.tool("add", lambda arguments, call: str(arguments.get("a", 0) + arguments.get("b", 0)))
        for name, run in (
            ("fault", fault),
            ("slow", slow),
            ("progress", progress),
            ("expire", expire),
            ("drop_streams", drop),
            ("mutate", mutate),
            ("fail", fail),
            ("flood", flood),
        ):
            self.tool(name, run)


@contextmanager
def serving(*options: object) -> Iterator[HttpStub]:
    """Run a stub beside the test."""
    stub = HttpStub(*options)
    stub.start()
    try:
        yield stub
    finally:
        stub.stop()


def _loads(body: bytes) -> Json:
    try:
        value = json.loads(body or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


if __name__ == "__main__":
    with serving(*sys.argv[1:]) as running:
        print(running.url, flush=True)
        sys.stdin.read()  # until whoever started it goes
