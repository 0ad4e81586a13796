"""One client: what each method answers, in each revision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kage.mcp.server import revisions, rpc
from kage.mcp.server.revisions import Era
from kage.mcp.server.rpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Id,
    Invalid,
    Malformed,
    Notification,
    Request,
)
from kage.mcp.server.wire import early_id

if TYPE_CHECKING:  # calls brings the tools: they are loaded once the client has its first answer
    from kage.mcp.server.calls import Calls
    from kage.mcp.server.service import Service


class Session:
    """Answers messages; ``send`` takes finished lines, ``fail`` what keeps it from serving.

    ``room`` is set while the client takes what is sent.
    """

    def __init__(
        self,
        service: Service,
        send: Callable[[bytes], None],
        fail: Callable[[Exception], None],
        room: asyncio.Event,
    ) -> None:
        self._service = service
        self._send = send
        self._fail = fail
        self._room = room
        self._loop = asyncio.get_running_loop()
        self._era: Era | None = None  # of the handshake, None before it
        self._lists: dict[str, bytes] = {}  # encoded answers to tools/list, by revision
        self._info: Mapping[str, Any] = {"name": "kage", "version": service.version}
        stamp = rpc.encode({revisions.SERVER_KEY: self._info})
        self._stamp = b',"resultType":"complete","_meta":%b' % stamp
        self._calls: Calls | None = None

    @property
    def calls(self) -> Calls:
        """The calls; loads the tools the first time.

        Raises:
            KageError: a tool cannot be made.
        """
        if self._calls is None:
            from kage.mcp.server.calls import Calls

            self._calls = Calls(
                self._service, self._send, self._room, info=self._info, stamp=self._stamp
            )
        return self._calls

    def lines(self, lines: Iterable[bytes | bytearray]) -> None:
        """Handle the messages of ``lines``, in order."""
        for line in lines:
            if line and not line.isspace():
                self._handle(line)

    def too_long(self, start: bytes) -> None:
        """Answer a message that was thrown away for its length; ``start`` is its beginning."""
        id_ = early_id(start) or b"null"
        self._send(rpc.raw_error(id_, INVALID_REQUEST, "the message is longer than 32 MiB"))

    async def finish(self, grace: float) -> None:
        """Let running calls end for ``grace`` seconds, then stop and answer the rest."""
        if self._calls is not None:
            await self._calls.finish(grace)

    def _handle(self, line: bytes | bytearray) -> None:
        message = rpc.parse(line)
        match message:
            case Request():
                self._request(message)
            case Notification():
                if message.method == "notifications/cancelled" and self._calls is not None:
                    self._calls.cancel(message.params)
            case Malformed():
                self._send(message.reply)
            case _:
                if self._calls is not None:
                    self._calls.answer(message)

    def _request(self, request: Request) -> None:
        try:
            if self._calls is not None and request.id in self._calls.running:
                raise Invalid(INVALID_REQUEST, "a request with this id is still running")
            self._dispatch(request)
        except Invalid as error:
            self._send(rpc.error(request.id, error.code, error.message, data=error.data))
        except (
            Exception
        ) as error:  # a mistake of ours is answered, and ends serving with its reason
            self._send(rpc.error(request.id, INTERNAL_ERROR, "kage cannot serve: see its stderr"))
            self._fail(error)

    def _dispatch(self, request: Request) -> None:
        method, params = request.method, request.params
        modern = revisions.is_modern(params)
        if method == "initialize" and not (modern and "protocolVersion" not in params):
            self._reply(request.id, self._initialize(params))
            self._loop.call_soon(self._load)
            return
        era = revisions.modern_era(params) if modern else self._era
        if not modern and method == "ping":
            self._reply(request.id, b"{}")
        elif method == "tools/call":
            self.calls.start(request, era or _no_era())
        elif method == "tools/list":
            self._reply(request.id, self._list(params, era or _no_era()))
        elif method == "server/discover" and (modern or era is None):
            self._reply(request.id, self._discover(era or _no_era()))
            self._loop.call_soon(self._load)
        else:
            raise Invalid(METHOD_NOT_FOUND, "Method not found", data=method[:200])

    def _load(self) -> None:
        try:
            _ = self.calls
        except Exception as error:  # serve() raises it once the wire is closed
            self._fail(error)

    def _reply(self, id_: Id, body: bytes) -> None:
        self._send(rpc.result(id_, body))

    def _initialize(self, params: Mapping[str, Any]) -> bytes:  # JSON
        self._era = era = revisions.handshake_era(params)
        return rpc.encode(
            {
                "protocolVersion": era.revision,
                "capabilities": {"tools": {}},
                "serverInfo": self._info,
                **self._instructions(),
            }
        )

    def _discover(self, era: Era) -> bytes:
        body = {
            "supportedVersions": [era.revision],
            "capabilities": {"tools": {}},
            **self._instructions(),
            **revisions.CACHE_HINTS,
        }
        return self._stamped(body)

    def _instructions(self) -> Mapping[str, str]:
        text = self._service.instructions
        return {"instructions": text} if text else {}

    def _list(self, params: Mapping[str, Any], era: Era) -> bytes:  # JSON
        if params.get("cursor") is not None:
            raise Invalid(INVALID_PARAMS, "there is no such cursor: the list has one page")
        found = self._lists.get(era.revision)
        if found is None:
            tools = [
                revisions.tool_shape(offer.definition, era.revision)
                for offer in self.calls.offers.values()
            ]
            if era.modern:
                found = self._stamped({"tools": tools, **revisions.CACHE_HINTS})
            else:
                found = rpc.encode({"tools": tools})
            self._lists[era.revision] = found
        return found

    def _stamped(self, body: Mapping[str, Any]) -> bytes:  # JSON
        """Encode a result of the modern era."""
        return rpc.encode(body)[:-1] + self._stamp + b"}"


def _no_era() -> Era:
    raise Invalid(
        INVALID_PARAMS,
        f"send initialize first ({', '.join(revisions.HANDSHAKE)}), or params._meta with "
        f"{revisions.VERSION_KEY} ({revisions.MODERN}) and {revisions.CAPABILITIES_KEY}",
    )
