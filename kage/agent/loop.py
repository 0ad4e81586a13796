"""One run: ask the model, run what it asks for, again until it asks for nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from kage.agent.calls import Calls
from kage.agent.screening import without_secrets
from kage.core.content import Text
from kage.core.errors import KageError, ProviderError
from kage.core.events import (
    CallStreamed,
    MessageAppended,
    ModelRetried,
    Publish,
    RunEnd,
    RunFinished,
    TextStreamed,
    ThinkingStreamed,
    TurnStarted,
)
from kage.core.ids import new_id
from kage.core.messages import AssistantMessage, Message, Stop, ToolCall
from kage.core.tools import Tool, ToolSpec
from kage.core.usage import Usage
from kage.providers.base import (
    CallDelta,
    Finished,
    ModelRequest,
    Provider,
    TextDelta,
    ThinkingDelta,
)
from kage.providers.retry import ATTEMPTS, delay
from kage.sessions.pairs import distinct
from kage.sessions.writer import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one request to the model is made of; asked for anew at every boundary."""

    provider: Provider
    system: str
    messages: tuple[Message, ...]
    tools: Mapping[str, Tool]  # all that can be called
    offered: tuple[ToolSpec, ...]  # those the request defines


@dataclass(slots=True, kw_only=True)
class Loop:
    """Works on one prompt.

    ``boundary`` applies what is queued and gives the next turn; ``calls`` runs tool calls and
    keeps their messages; ``kept`` is told each finished message.
    """

    session: Session
    publish: Publish
    boundary: Callable[[], Awaitable[Turn]]
    calls: Calls
    kept: Callable[[Message], None]
    waiting: Callable[[], bool]  # prompts that want to join
    measured: Callable[[AssistantMessage, Provider], None]
    max_turns: int  # 0 = none
    max_cost: float  # US dollars, 0 = none
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    turns: int = 0

    async def run(self, run_id: str, *, first: ToolCall | None = None) -> RunFinished:
        """Work until the model asks for nothing, the person interrupts, or a limit is met.

        ``first`` is a call the person asks for themselves; the model goes on from its result.
        """
        began = time.monotonic()
        end, what, why, fix = RunEnd.DONE, "", "", ""
        try:
            if first is not None:
                await self._given(first)
            end, what, fix = await self._turns(run_id)
        except asyncio.CancelledError:
            end, what = RunEnd.INTERRUPTED, "Interrupted"
        except KageError as error:
            end, what, why, fix = RunEnd.FAILED, error.what, error.why, error.fix
        return RunFinished(
            run_id=run_id,
            end=end,
            usage=self.usage,
            cost=self.cost,
            turns=self.turns,
            refused=self.calls.refused,
            seconds=time.monotonic() - began,
            what=what,
            why=why,
            fix=fix,
        )

    async def _turns(self, run_id: str) -> tuple[RunEnd, str, str]:
        while True:
            if self.max_turns and self.turns >= self.max_turns:
                what = f"The run stopped after {self.turns} turns"
                return RunEnd.LIMIT, what, "Send a prompt to go on, or raise limits.max_turns."
            if self.max_cost and (self.cost or 0.0) >= self.max_cost:
                what = f"The run stopped after ${self.cost:.2f}"
                return RunEnd.LIMIT, what, "Send a prompt to go on, or raise limits.max_cost."
            turn = await self.boundary()
            self.turns += 1
            reply = await self._ask(turn, run_id)
            self._count(reply, turn.provider)
            if reply.stop is Stop.LENGTH and not reply.calls:
                what = "The model's answer was cut off at its length limit"
                return RunEnd.LIMIT, what, "Ask it to go on, or raise the provider's max_tokens."
            if reply.calls:
                await self._call(reply, turn.tools)
            elif not self.waiting():
                return RunEnd.DONE, "", ""

    async def _given(self, call: ToolCall) -> None:
        turn = await self.boundary()
        model = turn.provider.info.id
        reply = AssistantMessage(id=new_id("m"), model=model, parts=(call,), stop=Stop.TOOLS)
        self._keep(reply)
        self.calls.again = call.id
        await self._call(reply, turn.tools)

    async def _call(self, reply: AssistantMessage, tools: Mapping[str, Tool]) -> None:
        self.calls.results.clear()
        try:
            await self.calls.run(reply.calls, tools)
        finally:
            for message in self.calls.results:
                self.kept(message)

    async def _ask(self, turn: Turn, run_id: str) -> AssistantMessage:
        """Stream one reply, trying again where that can help; the partial reply is never lost."""
        for attempt in range(1, ATTEMPTS + 1):
            partial = _Partial(id=new_id("m"), model=turn.provider.info.id)
            self.publish(
                TurnStarted(
                    run_id=run_id, turn=self.turns, message_id=partial.id, model=partial.model
                )
            )
            try:
                reply = await self._stream(turn, partial)
                self._keep(reply)
                return reply
            except asyncio.CancelledError:
                self._keep(partial.message(Stop.INTERRUPTED))
                raise
            except ProviderError as error:
                await self._wait_to_retry(error, attempt, partial)
        raise AssertionError("the last attempt returns or raises")

    async def _wait_to_retry(self, error: ProviderError, attempt: int, partial: _Partial) -> None:
        """Tell of the next try and wait for it.

        Raises:
            ProviderError: ``error``, when another try cannot help.
        """
        seconds = delay(error, attempt) if attempt < ATTEMPTS else None
        if seconds is None:
            if partial.texts:
                self._keep(partial.message(Stop.FAILED))
            raise error
        reason = f"{error.what}: {error.why}" if error.why else error.what
        self.publish(
            ModelRetried(attempt=attempt, attempts=ATTEMPTS - 1, seconds=seconds, reason=reason)
        )
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            if partial.texts:
                self._keep(partial.message(Stop.INTERRUPTED))
            raise

    async def _stream(self, turn: Turn, partial: _Partial) -> AssistantMessage:
        request = ModelRequest(
            message_id=partial.id,
            system=turn.system,
            messages=turn.messages,
            tools=turn.offered,
            session_id=self.session.id,
        )
        async with aclosing(turn.provider.stream(request)) as events:  # type: ignore[type-var]  # an async generator
            async for event in events:
                match event:
                    case TextDelta(text):
                        partial.texts.append(text)
                        self.publish(TextStreamed(message_id=partial.id, text=text))
                    case ThinkingDelta(text):
                        self.publish(ThinkingStreamed(message_id=partial.id, text=text))
                    case CallDelta():
                        if (tool := turn.tools.get(event.name)) is not None:
                            self.calls.effects.warm(tool.spec)  # long before the call is whole
                        self.publish(
                            CallStreamed(
                                message_id=partial.id,
                                call_id=event.call_id,
                                name=event.name,
                                characters=event.characters,
                            )
                        )
                    case Finished(message):
                        return distinct(message, turn.messages)
        raise ProviderError("The model's answer ended without an end", fix="Send the prompt again.")

    def _keep(self, reply: AssistantMessage) -> None:
        """Write down and show a reply; what calls send is with the reply itself."""
        reply = without_secrets(reply, self.calls.redact)
        self.session.append(reply)
        self.kept(reply)
        self.publish(MessageAppended(message=reply))

    def _count(self, reply: AssistantMessage, provider: Provider) -> None:
        self.usage = self.usage + reply.usage
        price = provider.info.price
        if price is None:
            self.cost = None
        elif self.cost is not None:
            self.cost += price.cost(reply.usage)
        self.measured(reply, provider)


@dataclass(slots=True)
class _Partial:
    """A reply while it streams."""

    id: str
    model: str
    texts: list[str] = field(default_factory=list)  # joined once: replies can be long

    def message(self, stop: Stop) -> AssistantMessage:
        parts = (Text("".join(self.texts)),) if self.texts else ()
        return AssistantMessage(id=self.id, model=self.model, parts=parts, stop=stop)
