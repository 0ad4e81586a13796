"""The one point every JSON-RPC message of a connection passes, both ways.

In order: leniency, seal, redaction, trace, meter. A ``tools/call`` is written only with an open
decision for exactly its bytes; what comes back is matched by ids nobody can guess.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from kage.core.errors import Refused
from kage.core.gate import Seals
from kage.core.sanitise import clip, visible
from kage.mcp.client.asking.reception import Reception
from kage.mcp.client.asking.requests import Refusals, ServerRequests
from kage.mcp.client.connections.era import Probe, Reply
from kage.mcp.client.wire.direct import Direct
from kage.mcp.client.wire.ends import Inbox, Reader, Writer
from kage.mcp.client.wire.exchange import Exchange, Written, current_exchange
from kage.mcp.client.wire.ledger import Ledger
from kage.mcp.client.wire.metadata import (
    Meter,
    answer_message,
    call_of,
    error_data,
    title,
    with_log_level,
)
from kage.mcp.client.wire.methods import LISTS, STAND_INS, WHOLE
from kage.mcp.client.wire.notices import Notices
from kage.mcp.client.wire.outlet import Outlet
from kage.mcp.client.wire.seal import followed, sealed
from kage.mcp.client.wire.wash import PROSE, TooDeep, heavy, wash

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCNotification, JSONRPCRequest

Streams = AbstractAsyncContextManager[tuple[Any, Any]]  # the SDK's pair, typed only by it
_NOTICE_WAIT = 0.25  # seconds a notification may wait behind a server that does not read
_PROBING = ("server/discover", "initialize")


class Tap:
    """Wraps a transport's pair of streams; :meth:`streams` is what ``mcp.Client`` takes.

    Args:
        streams: The transport's own pair.
        connection: The id decisions are bound to.
        trace: Takes one line per message, already redacted.
        changed: Called for each ``tools/list_changed``.
        ended: Set when the server's side of the pipe is closed.
    """

    def __init__(
        self,
        streams: Streams,
        *,
        connection: str,
        seals: Seals,
        redact: Callable[[str], str],
        trace: Callable[[str], None],
        changed: Callable[[], None],
        ended: asyncio.Event,
    ) -> None:
        from mcp.shared.message import SessionMessage

        self._wrap = SessionMessage
        self._inner = streams
        self._connection = connection
        self._seals = seals
        self._redact = redact
        self._trace = trace
        self._changed = changed
        self.meter = Meter()
        self._ended = ended
        self.probe: Probe | None = None
        self.reception: Reception | None = None  # answers the server's own requests
        self.log_level = ""  # asked for with each request, where the era has it
        self._requests = ServerRequests()
        self._refusals = Refusals(self.answer)
        self._ledger = Ledger()
        self._inbox = Inbox()
        self._outlet = Outlet()
        self._direct = Direct(self.send)
        self.notices = Notices(self._ledger, self._requests, redact=redact, drop=self._drop)
        self.notices.changed = self._tools_changed

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Reader, Writer]]:
        """Open the transport's pair and give the tapped one."""
        async with self._inner as (reader, writer):
            self._outlet.writer = writer
            pump = asyncio.create_task(self._pump(reader), name="tap")
            try:
                yield Reader(self._inbox), Writer(self.send)
            finally:
                self.close()
                pump.cancel()
                await asyncio.wait([pump])

    def close(self) -> None:
        """End both directions now; whoever waits for an answer is told the connection closed."""
        if not self._outlet.closed:
            self._outlet.close()
            self._inbox.close()
            self._direct.close()
            self._refusals.end()

    @property
    def direct(self) -> Direct | None:
        """The way of calls past the SDK, None where only the SDK knows what has to go along."""
        writer = self._outlet.writer
        plain = not getattr(writer, "marks", False)  # no headers, only messages
        known = plain or getattr(writer, "posting", False)
        return self._direct if known and self._direct.ready else None

    def reply(self, reply: Reply) -> None:
        """Hand the SDK an answer made here."""
        from mcp_types import ErrorData, JSONRPCError, JSONRPCResponse

        self._ledger.disown(reply.id)
        if reply.result is not None:
            self._forward(JSONRPCResponse(jsonrpc="2.0", id=reply.id, result=dict(reply.result)))
        else:
            error = ErrorData(code=reply.code, message=reply.message, data=reply.data)
            self._forward(JSONRPCError(jsonrpc="2.0", id=reply.id, error=error))

    # ---- to the server

    async def send(self, item: SessionMessage) -> None:
        """Write one message of the SDK.

        Raises:
            Refused: a ``tools/call`` no open decision covers; nothing was written.
            anyio.ClosedResourceError: the connection is closed.
        """
        from anyio import ClosedResourceError
        from mcp_types import JSONRPCNotification, JSONRPCRequest

        if self._outlet.closed:
            raise ClosedResourceError
        match item.message:
            case JSONRPCRequest() as request:
                await self._send_request(request, item)
            case JSONRPCNotification() as notice:
                await self._send_notice(notice, item)
            case answer:
                if answer.id is not None:
                    self._requests.settle(answer.id)
                await self._write(item)

    async def _send_request(self, request: JSONRPCRequest, item: SessionMessage) -> None:
        if self.probe is not None and not self._probe_allows(request):
            return
        exchange = current_exchange()
        self._direct.learn(request)
        params = request.params
        follow = exchange.follow if exchange is not None else None
        if request.method == "tools/call":
            try:
                params, decision = sealed(self._seals, self._connection, params, follow)
            except Refused:
                self.meter.refused += 1
                self._trace("refused a tools/call without a decision")
                raise
            if exchange is not None:
                exchange.decision = decision
                exchange.call = call_of(params)
                params["_meta"] = {**(params.get("_meta") or {}), "progressToken": exchange.token}
        elif follow is not None:
            params = followed(params, follow)
        params = with_log_level(params, self.log_level)
        wire = self._ledger.add(request.id, request.method, exchange)
        changed = {"id": wire} if params is None else {"id": wire, "params": params}
        message = request.model_copy(update=changed)
        try:
            await self._write(self._wrap(message, item.metadata), exchange)
        except BaseException:  # goes on; what was never written is not waited for
            if exchange is None or exchange.written is Written.NO:
                self._ledger.forget(request.id)
            raise
        self._trace(f"→ {title(request.method, params)}")

    def _probe_allows(self, request: JSONRPCRequest) -> bool:
        assert self.probe is not None
        if request.method == "server/discover":
            return self.probe.asking(request.id)
        if request.method == "initialize":
            return self.probe.shaking(request.id)
        return True

    async def _send_notice(self, notice: JSONRPCNotification, item: SessionMessage) -> None:
        """Write a notification, giving up soon: nothing may hang on a server that does not read."""
        if notice.method == "notifications/cancelled":
            wire = self._ledger.forget((notice.params or {}).get("requestId"))
            if wire is None:
                return  # never written, so there is nothing to cancel
            params = {**(notice.params or {}), "requestId": wire}
            item = self._wrap(notice.model_copy(update={"params": params}), item.metadata)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_NOTICE_WAIT):
                await self._write(item)
        self._trace(f"→ {notice.method}")

    async def _write(self, item: SessionMessage, exchange: Exchange | None = None) -> None:
        await self._outlet.write(item, exchange)
        self.meter.sent += 1

    async def answer(
        self,
        request: int | str,
        result: Mapping[str, Any] | None,
        error: tuple[int, str] | None,
    ) -> None:
        """Write the answer to a request of the server.

        Raises:
            anyio.ClosedResourceError: the connection is closed.
        """
        await self.send(self._wrap(answer_message(request, result, error)))

    # ---- from the server

    async def _pump(self, reader: Any) -> None:  # the SDK's ReadStream
        from anyio import ClosedResourceError

        try:
            async for item in reader:
                if isinstance(item, Exception):
                    self._drop(f"unreadable message: {item}")
                    continue
                self.meter.received += 1
                await self._inbox.room()
                try:
                    await self._receive(item)
                except Exception as error:  # boundary: one odd message may not end the connection
                    self._drop(f"a message kage stumbled over: {error!r}")
        except ClosedResourceError:
            pass  # the transport closed under us, which is the end of the stream
        finally:
            self._ended.set()
            self.close()

    async def _receive(self, item: SessionMessage) -> None:
        from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

        match item.message:
            case JSONRPCResponse() as answer:
                await self._answer(answer.id, result=answer.result)
            case JSONRPCError() as answer:
                await self._answer(
                    answer.id, error=(answer.error.code, answer.error.message, answer)
                )
            case JSONRPCRequest() as request:
                if self._requests.admit(request.id):
                    self._trace(f"← request {title(request.method, request.params)}")
                    taken = self.reception is not None and self.reception.take(
                        request.id, request.method, request.params
                    )
                    if not taken:
                        self._inbox.put(item)
                elif self._requests.is_open(request.id) or not self._refusals.add(request.id):
                    self._drop(f"too many requests at once, or one twice: {request.method}")
            case JSONRPCNotification() as notice:
                if self.notices.take(notice, self.reception):
                    self._inbox.put(item)

    async def _answer(
        self,
        wire: int | str | None,
        *,
        result: Mapping[str, Any] | None = None,
        error: tuple[int, str, Any] | None = None,  # code, message, the SDK's own object
    ) -> None:
        from mcp_types import JSONRPCResponse

        from kage.mcp.client.transport.parse import INVALID_ANSWER

        pending = self._ledger.answered(wire)
        if pending is None and (pending := self._ledger.misspelt(wire)) is not None:
            text = "it answered with an id of another type"
            result, error = None, (INVALID_ANSWER, text, None)
        if pending is None:
            self._drop("an answer nobody waits for")
            return
        listed = pending.exchange is not None and pending.method in LISTS
        state = result.get("requestState") if result is not None else None
        if result is not None and not listed:  # of a list each entry is washed by itself
            only = None if pending.method in WHOLE else PROSE
            washing = functools.partial(wash, result, self._redact, only=only)
            try:
                result = await asyncio.to_thread(washing) if heavy(result) else washing()
            except TooDeep as deep:
                result, error = None, (INVALID_ANSWER, str(deep), None)
        code, text = (error[0], self._redact(error[1])) if error is not None else (0, "")
        self._trace(f"← {pending.method} {f'error {code} {text}' if error else 'ok'}")
        if (
            self.probe is not None
            and pending.method in _PROBING
            and not self.probe.answered(
                pending.sdk_id, pending.method, result=result, code=code, message=text
            )
        ):
            return
        if pending.exchange is not None:
            if result is not None and isinstance(state, str):
                result = {**result, "requestState": state}  # goes back exactly as it came
            pending.exchange.result = result
            pending.exchange.error = None if error is None else (code, text)
            pending.exchange.error_data = error_data(error)
            if self._direct.answered(pending.exchange):
                return
        if result is None:
            self._fail(pending.sdk_id, code, text, error)
            return
        if pending.exchange is not None and pending.method in STAND_INS:
            result = STAND_INS[pending.method]
        self._forward(JSONRPCResponse(jsonrpc="2.0", id=pending.sdk_id, result=dict(result)))

    def _fail(
        self, sdk_id: int | str, code: int, text: str, error: tuple[int, str, Any] | None
    ) -> None:
        from mcp_types import ErrorData, JSONRPCError

        data = error[2].error.data if error is not None and error[2] is not None else None
        told = ErrorData(code=code, message=text, data=data)
        self._forward(JSONRPCError(jsonrpc="2.0", id=sdk_id, error=told))

    def _tools_changed(self) -> None:
        self._trace("← notifications/tools/list_changed")
        self._changed()

    def _forward(self, message: Any) -> None:  # one of the SDK's four message classes
        self._inbox.put(self._wrap(message))

    def _drop(self, why: str) -> None:
        self.meter.dropped += 1
        if self.meter.dropped <= 10:  # a flood is counted, not written down
            self._trace(f"dropped {visible(clip(self._redact(why), 200), single_line=True)}")
