"""The calls of one client that are running: judged, asked about, run, cancelled, answered."""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kage.core.errors import KageError
from kage.core.messages import Outcome
from kage.core.tools import Invocation, ToolResult
from kage.mcp.server import revisions, rpc
from kage.mcp.server.expose import Offer, failure_body, offers, result_body
from kage.mcp.server.progress import Progress, no_output, no_progress
from kage.mcp.server.revisions import Era
from kage.mcp.server.rpc import INVALID_PARAMS, Answer, Id, Invalid, Request
from kage.mcp.server.service import Ruling, Service
from kage.mcp.server.validate import problems_of

if TYPE_CHECKING:
    from kage.mcp.server.confirm import Asking, Sealing

MOST_CALLS = 1000  # running at the same time
_STOP = 3.0  # seconds a cancelled tool has to end its processes


class Calls:
    """Runs calls; ``stamp`` ends the results of the modern era."""

    def __init__(
        self,
        service: Service,
        send: Callable[[bytes], None],
        room: asyncio.Event,
        *,
        info: Mapping[str, Any],  # JSON
        stamp: bytes,
    ) -> None:
        self.offers = offers(service.offered())
        self.running: dict[Id, asyncio.Task[None]] = {}
        self._service = service
        self._send = send
        self._room = room  # set while the client takes what is sent
        self._info = info
        self._stamp = stamp
        self._loop = asyncio.get_running_loop()
        self._silent: set[Id] = set()  # cancelled by the client: no answer
        self._numbers = itertools.count(1)
        self._asking: Asking | None = None
        self._sealing: Sealing | None = None
        self._stopping = False

    def start(self, request: Request, era: Era) -> None:
        """Begin a call, or answer at once why not.

        Raises:
            Invalid: it names no tool, or its parameters have the wrong shape.
        """
        params = request.params
        name = params.get("name")
        if not isinstance(name, str):
            raise Invalid(INVALID_PARAMS, "name must be text")
        offer = self.offers.get(name)
        if offer is None:
            known = ", ".join(self.offers)
            raise Invalid(INVALID_PARAMS, f"Unknown tool: {name[:200]} (known: {known})")
        arguments = params.get("arguments")
        if arguments is None:
            arguments = {}
        elif type(arguments) is not dict:
            raise Invalid(INVALID_PARAMS, "arguments must be an object")
        problems = problems_of(offer.validate, arguments)
        if problems:
            text = f"Bad arguments for {name}: {'; '.join(problems)}"
        elif len(self.running) >= MOST_CALLS:
            text = f"{MOST_CALLS} calls are running already: wait for some to end"
        else:
            call = self._call(request, offer, arguments, era)
            self.running[request.id] = self._loop.create_task(call)
            return
        self._send(rpc.result(request.id, failure_body(text, self._stamp_for(era))))

    def cancel(self, params: Mapping[str, Any]) -> None:  # JSON
        """Stop the call a client no longer wants; it gets no answer."""
        id_ = params.get("requestId")
        if not rpc.is_id(id_):
            return
        task = self.running.get(id_)
        if task is not None:
            self._silent.add(id_)
            task.cancel()

    def answer(self, message: Answer) -> None:
        """Take the client's answer to a question."""
        if self._asking is not None:
            self._asking.answer(message)

    async def finish(self, grace: float) -> None:
        """Let running calls end for ``grace`` seconds, then stop and answer the rest."""
        self._stopping = True
        if self._asking is not None:
            self._asking.close()
        tasks = set(self.running.values())
        if tasks and grace > 0:
            _, tasks = await asyncio.wait(tasks, timeout=grace)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP)
        for id_ in self.running.keys() - self._silent:  # deaf to cancellation
            self._send(rpc.error(id_, rpc.INTERNAL_ERROR, "the call could not be stopped"))

    def _stamp_for(self, era: Era) -> bytes:
        return self._stamp if era.modern else b""

    async def _call(
        self,
        request: Request,
        offer: Offer,
        arguments: Mapping[str, Any],  # JSON
        era: Era,
    ) -> None:
        """Run one call and send its answer, however it ends."""
        id_ = request.id
        stamp = self._stamp_for(era)
        name = offer.spec.name
        line = b""
        try:
            line = rpc.result(id_, await self._answer(request, offer, arguments, era))
        except asyncio.CancelledError:
            text = f"{name} was stopped: kage is ending. It may have done part of its work"
            line = rpc.result(id_, failure_body(text, stamp))
            raise
        except Invalid as error:
            line = rpc.error(id_, error.code, error.message, data=error.data)
        except KageError as error:
            line = rpc.result(id_, failure_body(str(error), stamp))
        except Exception as error:  # the caller reads that it failed, the terminal reads why
            line = rpc.result(id_, failure_body(_complaint(name, error), stamp))
        finally:
            self.running.pop(id_, None)
            if id_ in self._silent:
                self._silent.discard(id_)
            else:
                self._send(line)

    async def _answer(
        self,
        request: Request,
        offer: Offer,
        arguments: Mapping[str, Any],  # JSON
        era: Era,
    ) -> bytes:
        service, spec = self._service, offer.spec
        ruling = service.rule(spec, arguments)
        if ruling.verdict == "ask":
            asked = await self._ask(request, offer, arguments, era, ruling.rule or "ask")
            if isinstance(asked, bytes):
                return asked
            ruling = asked
        if not self._room.is_set():  # a result nobody takes yet would only fill the memory
            await self._room.wait()
        call_id = f"s{next(self._numbers)}"
        if service.log is not None:
            service.log.decided(call_id, spec, arguments, ruling)
        if ruling.verdict == "deny":
            reason = ruling.reason or f"{spec.name} was refused by the rule {ruling.rule}"
            return failure_body(reason, self._stamp_for(era))
        result = await self._run(request, offer, arguments, era, call_id)
        return result_body(result, era.revision, self._stamp_for(era))

    async def _run(
        self,
        request: Request,
        offer: Offer,
        arguments: Mapping[str, Any],  # JSON
        era: Era,
        call_id: str,
    ) -> ToolResult:
        service = self._service
        progress = self._progress(request, era)
        call = Invocation(
            call_id=call_id,
            arguments=arguments,
            workspace=service.root,
            roots=(service.root,),  # reading admits the scratch folder as well
            scratch=service.scratch,
            progress=progress or no_progress,
            output=progress.output if progress else no_output,
            environment=service.environment,
        )
        began = time.monotonic()
        outcome = Outcome.UNKNOWN
        try:
            result = await offer.tool.run(call)
            outcome = result.outcome
            return result
        except KageError:
            outcome = Outcome.TOOL_ERROR
            raise
        finally:
            if progress is not None:
                progress.close()
            if service.log is not None:
                service.log.finished(call_id, offer.spec, outcome, time.monotonic() - began)

    def _progress(self, request: Request, era: Era) -> Progress | None:
        meta = request.params.get("_meta")
        token = meta.get("progressToken") if type(meta) is dict else None
        if not rpc.is_id(token):  # the same rules: it is kept and sent back
            return None
        texts = era.since("2025-03-26")
        return Progress(token, self._send, self._loop, self._room, texts=texts)

    async def _ask(
        self,
        request: Request,
        offer: Offer,
        arguments: Mapping[str, Any],  # JSON
        era: Era,
        rule: str,
    ) -> Ruling | bytes:
        """Ask the person; gives the final ruling, or a body that carries the question."""
        from kage.mcp.server.confirm import Asking, Sealing, question

        if not era.elicits:
            return _refusal(
                offer, rule, f"{rule} asks, and the calling program cannot ask (no elicitation)"
            )
        params = question(offer.spec, arguments, rule)
        if era.modern:
            self._sealing = self._sealing or Sealing()
            said = self._sealing.read(offer.spec, arguments, request.params)
            if said is None:
                body = self._sealing.required(offer.spec, arguments, params)
                return rpc.encode({**body, "_meta": {revisions.SERVER_KEY: self._info}})
        else:
            self._asking = self._asking or Asking(self._send)
            if self._stopping:
                self._asking.close()
            said = await self._asking.ask(params)
        if said:
            return Ruling(verdict="allow", rule=rule, reason="the person agreed")
        answer = "the person did not agree" if said is False else "nobody answered"
        return _refusal(offer, rule, f"{rule} asks, and {answer}")


def _refusal(offer: Offer, rule: str, reason: str) -> Ruling:
    return Ruling(verdict="deny", rule=rule, reason=f"{offer.spec.name} was refused: {reason}")


def _complaint(name: str, error: Exception) -> str:
    """Tell the terminal of an error nobody foresaw, and give what the caller reads."""
    from kage.core.sanitise import clip, visible

    text = visible(str(error), single_line=True)
    print(clip(f"kage: {name}: {type(error).__name__}: {text}", 1000), file=sys.stderr)
    return f"{name} failed unexpectedly: {clip(text, 500) or 'no reason given'}"
