"""The calls of one reply: judged in order, run side by side, each with exactly one result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from kage.agent.arguments import Checker
from kage.agent.effects import Effects
from kage.agent.missing import no_such_tool
from kage.agent.results import Desk, heavy, shown
from kage.core.canonical import NotCanonical, digest
from kage.core.content import Text, as_text
from kage.core.errors import KageError, Refused, ToolError
from kage.core.events import (
    MessageAppended,
    Publish,
    ToolPrinted,
    ToolProgressed,
    ToolQueued,
    ToolStarted,
)
from kage.core.gate import CallRequest, Decision
from kage.core.messages import Outcome, ToolCall, ToolMessage
from kage.core.redact import Redactor
from kage.core.tools import Invocation, Previews, Risk, Tool, ToolResult, overlong
from kage.core.undo import Effect
from kage.sessions.writer import Session


class Judge(Protocol):
    """What lets calls through; ``permissions.gate.Gate``."""

    async def decide(self, request: CallRequest, *, preview: Any = None) -> Decision:
        """Answer one call; see ``Gate.decide``."""
        ...

    async def finish(
        self,
        request: CallRequest,
        decision: Decision,
        outcome: Outcome,
        *,
        seconds: float,
        result: str,
    ) -> Outcome:
        """Record how an allowed call ended; see ``Gate.finish``."""
        ...


@dataclass(slots=True, kw_only=True)
class Calls:
    """Runs the calls of replies for one session."""

    gate: Judge
    session: Session
    workspace: Path
    publish: Publish
    redact: Redactor
    checker: Checker
    environment: Mapping[str, str]
    desk: Desk
    writing: asyncio.Lock
    effects: Effects
    results: list[ToolMessage] = field(default_factory=list)
    refused: int = 0
    again: str = ""  # the id of a call that repeats one whose outcome is unknown
    _open: dict[str, tuple[CallRequest, Decision]] = field(default_factory=dict)  # not begun
    _ends: dict[str, Outcome] = field(default_factory=dict)  # of calls that ran
    _took: dict[str, float] = field(default_factory=dict)  # seconds, of the same calls
    _did: dict[str, tuple[Effect | None, str]] = field(default_factory=dict)  # to files

    async def run(self, calls: tuple[ToolCall, ...], tools: Mapping[str, Tool]) -> None:
        """Run ``calls``; when this returns or is cancelled, ``results`` has one for each."""
        judged: set[str] = set()
        self._ends.clear()
        self._took.clear()
        self._did.clear()
        self._open.clear()
        try:
            async with asyncio.TaskGroup() as group:
                for call in calls:
                    tool = tools.get(call.name)
                    spec = tool.spec if tool is not None else None
                    self.publish(ToolQueued(call=call, spec=spec))
                    invocation = await self._judge(call, tool, tools)
                    judged.add(call.id)
                    if invocation is not None and tool is not None:
                        group.create_task(self._run(tool, *invocation))
        finally:
            await self._close_unused()
            done = {message.call_id for message in self.results}
            for call in calls:
                if call.id not in done:
                    self._interrupted(call, tools.get(call.name), judged=call.id in judged)

    async def _judge(
        self, call: ToolCall, tool: Tool | None, tools: Mapping[str, Tool]
    ) -> tuple[CallRequest, Decision, Invocation] | None:
        if tool is None:
            self._finish(call, Outcome.NEVER_SENT, no_such_tool(call.name, tools))
            return None
        fault = self._fault(call, tool)
        if fault:
            self._finish(call, Outcome.NEVER_SENT, fault)
            return None
        request = CallRequest(
            call_id=call.id,
            tool=tool.spec,
            arguments=call.arguments,
            workspace=self.workspace,
            again=call.id == self.again,
        )
        preview = None
        if isinstance(tool, Previews):
            preview = partial(tool.preview, self._invocation(request, ()))
        self.effects.warm(tool.spec)
        decision = await self.gate.decide(request, preview=preview)
        if not decision.allowed:
            self.refused += 1
            text = f"{decision.reason} {decision.fix}".strip()
            self._finish(call, Outcome.REFUSED, text)
            return None
        self._open[call.id] = request, decision
        self.publish(ToolStarted(call_id=call.id, decision=decision))
        return request, decision, self._invocation(request, decision.roots)

    def _fault(self, call: ToolCall, tool: Tool) -> str:
        if call.broken is not None:
            return (
                f"The arguments of {call.name} were no JSON object, so nothing was called. "
                "Send one JSON object."
            )
        try:
            digest(call.arguments)
        except NotCanonical as error:
            return f"Nothing was called: {error}."
        if long := overlong(tool.spec, call.arguments):
            return f"Nothing was called: {long}."
        faults = self.checker.faults(tool.spec, call.arguments)
        if faults:
            return f"Nothing was called, the arguments do not fit {call.name}: " + "; ".join(faults)
        return ""

    def _invocation(self, request: CallRequest, roots: tuple[Path, ...]) -> Invocation:
        call_id = request.call_id
        return Invocation(
            call_id=call_id,
            arguments=request.arguments,
            workspace=self.workspace,
            roots=(self.workspace, *roots),
            scratch=self.session.artifacts,
            progress=lambda done, total, message: self.publish(
                ToolProgressed(call_id=call_id, progress=done, total=total, message=message)
            ),
            output=lambda text: self.publish(ToolPrinted(call_id=call_id, text=text)),
            environment=self.environment,
            redact=self.redact,
        )

    async def _run(
        self, tool: Tool, request: CallRequest, decision: Decision, invocation: Invocation
    ) -> None:
        keeper = await self.effects.begin(request)
        del self._open[request.call_id]
        invocation = replace(invocation, keeper=keeper)
        began = time.monotonic()
        result = ToolResult.error("")
        outcome = Outcome.UNKNOWN if tool.spec.server else Outcome.TOOL_ERROR
        try:
            if tool.spec.risk is Risk.WRITE:  # two edits of one file must not cross
                async with self.writing:
                    result = await tool.run(invocation)
            else:
                result = await tool.run(invocation)
            outcome = result.outcome
        except Refused as error:
            outcome = Outcome.REFUSED
            result = ToolResult.error(str(error), outcome=outcome)
        except ToolError as error:
            result = ToolResult.error(str(error))
            outcome = result.outcome
        except KageError as error:
            result = ToolResult.error(str(error), outcome=outcome)
        except Exception as error:  # a tool's own mistake costs one call, and is told
            text = f"{request.tool.name} failed inside kage ({type(error).__name__}: {error})"
            result = ToolResult.error(text, outcome=outcome)
        finally:
            seconds = time.monotonic() - began
            text = as_text(result.content)
            self._took[request.call_id] = seconds
            try:
                self._ends[request.call_id] = await self.gate.finish(
                    request, decision, outcome, seconds=seconds, result=text
                )
            finally:  # also where that was broken off: what was begun is ended
                self._did[request.call_id] = await self.effects.end(request)
        show = partial(shown, request, result, seconds, self.desk)
        self._append(await asyncio.to_thread(show) if heavy(result) else show())

    async def _close_unused(self) -> None:
        """Take back the decisions about calls that were let through and cancelled before a step."""
        for request, decision in self._open.values():
            await self.gate.finish(request, decision, Outcome.NEVER_SENT, seconds=0.0, result="")
        self._open.clear()

    def _finish(self, call: ToolCall, outcome: Outcome, text: str) -> None:
        self._append(
            ToolMessage(
                call_id=call.id,
                name=call.name,
                outcome=outcome,
                content=(Text(self.redact(text)),),
                summary="refused" if outcome is Outcome.REFUSED else "",
            )
        )

    def _interrupted(self, call: ToolCall, tool: Tool | None, *, judged: bool) -> None:
        began = call.id in self._took  # also where recording its end was broken off
        end = self._ends.get(call.id, Outcome.UNKNOWN if began else Outcome.NEVER_SENT)
        if not judged or end is Outcome.NEVER_SENT:
            outcome, text = Outcome.NEVER_SENT, "The person interrupted; this was not called."
        elif tool is not None and tool.spec.server is not None:
            outcome = Outcome.UNKNOWN
            text = (
                "The person interrupted while this ran; the server was told to cancel, but it may "
                "have acted. Check with a reading tool before calling it again."
            )
        else:
            outcome, text = Outcome.TOOL_ERROR, "The person interrupted; this was stopped half-way."
        self._append(
            ToolMessage(
                call_id=call.id,
                name=call.name,
                outcome=outcome,
                content=(Text(text),),
                seconds=self._took.get(call.id, 0.0),
                summary="interrupted",
            )
        )

    def _append(self, message: ToolMessage) -> None:
        effect, difference = self._did.pop(message.call_id, (None, ""))
        if effect is not None:
            message = replace(message, effect=effect, diff=message.diff or difference)
        self.results.append(message)
        self.session.append(message)
        self.publish(MessageAppended(message=message))
