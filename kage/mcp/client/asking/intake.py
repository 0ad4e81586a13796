"""Take a server's own requests off the wire (the handshake era) and answer them there.

At most a few wait for the person at once; the rest is declined at the price of one message. A
question that came during calls is withdrawn once none of them runs any more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from kage.mcp.client.asking.answering import METHODS, Answering, Asked
from kage.mcp.client.asking.requests import REJECTED, WRITE_WAIT, Reply, Unanswerable, Wire
from kage.mcp.client.wire.wash import heavy

MAX_ASKED = 8  # requests of one connection answered at the same time

Pause = Callable[[], AbstractContextManager[None]]


@dataclass(slots=True, eq=False)
class _Running:
    """A call under way; ``pause`` stops its clock while the person is asked."""

    tool: str
    decision: Callable[[], str]
    pause: Pause


@dataclass(slots=True, eq=False)
class _Open:
    """A request being answered, and the calls it may belong to."""

    task: asyncio.Task[None]
    calls: set[_Running] = field(default_factory=set)
    silent: bool = False  # the server cancelled it: no answer


class Intake:
    """The open requests of one connection.

    Args:
        reply: Writes a result, or an error (code, text), for a request.
    """

    def __init__(self, answering: Answering, reply: Reply) -> None:
        self.answering = answering
        self._reply = reply
        self._open: dict[Wire, _Open] = {}
        self._running: list[_Running] = []

    @property
    def waiting(self) -> int:
        """How many requests are being answered."""
        return len(self._open)

    def take(self, request: Wire, method: str, params: Mapping[str, Any] | None) -> bool:
        """Begin to answer a request; False leaves it to the SDK."""
        if method not in METHODS:
            return False
        calls = list(self._running)
        if len(self._open) >= MAX_ASKED or (params is not None and heavy(params)):
            work = self._refuse(request, method)
        else:
            work = self._answer(request, self._asked(method, params or {}, calls), calls)
        task = asyncio.create_task(work, name=f"answer {method}")
        held = self._open[request] = _Open(task, set(calls))
        task.add_done_callback(lambda _: self._forget(request, held))
        return True

    def cancel(self, request: Wire) -> bool:
        """The server takes a request back; False: it is none of these."""
        held = self._open.get(request)
        if held is None:
            return False
        held.silent = True
        held.task.cancel()
        return True

    @contextmanager
    def during(self, tool: str, decision: Callable[[], str], pause: Pause) -> Iterator[None]:
        """Mark a call as running; at its end what only it can have asked for is withdrawn."""
        call = _Running(tool, decision, pause)
        self._running.append(call)
        try:
            yield
        finally:
            self._running.remove(call)
            for held in tuple(self._open.values()):
                if call in held.calls:
                    held.calls.discard(call)
                    if not held.calls:
                        held.task.cancel()

    def end(self) -> None:
        """Withdraw everything; nobody is answered any more."""
        for held in self._open.values():
            held.silent = True
            held.task.cancel()

    def _forget(self, request: Wire, held: _Open) -> None:
        if self._open.get(request) is held:  # the server may have used the id anew by now
            del self._open[request]

    def _asked(self, method: str, params: Mapping[str, Any], calls: list[_Running]) -> Asked:
        tool = ", ".join(dict.fromkeys(call.tool for call in calls))
        decision = calls[0].decision() if len(calls) == 1 else ""
        return Asked(method=method, params=params, tool=tool, decision=decision)

    async def _answer(self, request: Wire, asked: Asked, calls: list[_Running]) -> None:
        result: Mapping[str, Any] | None = None
        error: tuple[int, str] | None = None
        try:
            with ExitStack() as stack:
                for call in calls:
                    stack.enter_context(call.pause())
                result = await self.answering.answer(asked)
        except Unanswerable as refusal:
            error = (refusal.code, str(refusal))
            self.answering.complain(
                f"A request of the server {self.answering.spec.name} was refused", str(refusal)
            )
        except asyncio.CancelledError:
            held = self._open.get(request)
            if held is not None and not held.silent:
                await self._write(request, *_withdrawn(asked.method))
            raise
        await self._write(request, result, error)

    async def _refuse(self, request: Wire, method: str) -> None:
        """Turn one away that is too much, without showing it to anybody."""
        name = self.answering.spec.name
        what = f"The server {name} asks more than a person could answer"
        self.answering.complain(what, f"more than {MAX_ASKED} questions at once, or a huge one")
        await self._write(request, *_withdrawn(method))

    async def _write(
        self, request: Wire, result: Mapping[str, Any] | None, error: tuple[int, str] | None
    ) -> None:
        from anyio import BrokenResourceError, ClosedResourceError

        with contextlib.suppress(TimeoutError, ClosedResourceError, BrokenResourceError):
            async with asyncio.timeout(WRITE_WAIT):
                await self._reply(request, result, error)


def _withdrawn(method: str) -> tuple[Mapping[str, Any] | None, tuple[int, str] | None]:
    if method == "elicitation/create":
        return {"action": "cancel"}, None
    return None, (REJECTED, "the request was withdrawn before anybody answered it")
