"""Stand-ins at protocols kage owns: a scripted model, a gate, servers and tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from kage.agent.boundary import Swap
from kage.agent.bus import Bus
from kage.agent.engine import Engine
from kage.agent.parts import Parts
from kage.agent.reloading import Change
from kage.agent.screening import Screen
from kage.agent.source import NoOffers, OfferSource
from kage.config.schema import Limits, ServerSpec, Settings
from kage.core.commands import SignInCommand
from kage.core.content import Text
from kage.core.events import Event, RunFinished
from kage.core.gate import (
    Answer,
    Asker,
    CallRequest,
    Decision,
    Mode,
    Question,
    Verdict,
    Who,
)
from kage.core.ids import new_id
from kage.core.messages import AssistantMessage, Outcome, Part, Stop, ToolCall
from kage.core.pins import HeldChange
from kage.core.redact import Redactor
from kage.core.servers import ServerStatus
from kage.core.tools import (
    Invocation,
    Risk,
    Subject,
    SubjectKind,
    Tool,
    ToolResult,
    ToolSpec,
)
from kage.core.usage import Price, Usage
from kage.providers.base import Finished, ModelEvent, ModelInfo, ModelRequest, TextDelta
from kage.sessions.history import History
from kage.sessions.store import SessionStore
from kage.tools.registry import Registry
from tests.waiting import until

T = TypeVar("T")
Step = Callable[[ModelRequest], AsyncIterator[ModelEvent]]


def says(*texts: str, calls: Iterable[ToolCall] = (), stop: Stop | None = None) -> Step:
    """Script a reply that streams ``texts`` and asks for ``calls``."""
    asked = tuple(calls)

    async def step(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        for text in texts:
            yield TextDelta(text)
            await asyncio.sleep(0)
        parts: tuple[Part, ...] = (Text("".join(texts)), *asked) if texts else asked
        end = stop or (Stop.TOOLS if asked else Stop.END)
        usage = Usage(input=100, output=10)
        yield Finished(
            AssistantMessage(
                id=request.message_id, parts=parts, model="fake:one", stop=end, usage=usage
            )
        )

    return step


def fails(error: Exception, *texts: str) -> Step:
    """Script a reply that breaks off after ``texts``."""

    async def step(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        for text in texts:
            yield TextDelta(text)
        raise error

    return step


def hangs(*texts: str) -> Step:
    """Script a reply that never ends after ``texts``."""

    async def step(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        for text in texts:
            yield TextDelta(text)
        await asyncio.Event().wait()

    return step


def call(name: str, **arguments: Any) -> ToolCall:
    """Make a call."""
    return ToolCall(id=new_id("c"), name=name, arguments=arguments)


@dataclass
class FakeProvider:
    """Plays the steps in order and keeps what it was asked."""

    steps: list[Step]
    requests: list[ModelRequest] = field(default_factory=list)
    closed: bool = False
    name: str = "fake:one"

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(id=self.name, name="one", window=1000, price=Price(input=1.0, output=1.0))

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        return self.steps[len(self.requests) - 1](request)

    async def close(self) -> None:
        self.closed = True


@dataclass
class FakeModels:
    provider: FakeProvider

    async def choose(self) -> tuple[str, str]:
        return "fake:one", "it is the only one"

    def create(self, model: str) -> FakeProvider:
        return self.provider

    async def available(self) -> tuple[ModelInfo, ...]:
        return (self.provider.info,)


@dataclass
class FakeGate:
    """Asks whoever it was given about tools named in ``asks``; allows the rest."""

    asker: Asker | None
    asks: frozenset[str] = frozenset()
    mode: Mode = Mode.DEFAULT
    finished: list[tuple[str, Outcome]] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    denied: frozenset[str] = frozenset()

    def said(self, text: str) -> None:
        pass

    def returned(self, server: str, text: str) -> None:
        pass

    def denies(self, request: CallRequest) -> bool:
        return request.tool.name in self.denied

    async def decide(self, request: CallRequest, *, preview: Any = None) -> Decision:
        self.order.append(request.tool.name)
        verdict = Verdict.ALLOW
        if request.tool.name in self.asks and self.asker is not None:
            question = Question(
                id=new_id("q"), request=request, digest="d", reason="it asks", scopes=()
            )
            reply = await self.asker.ask(question)
            if reply.answer in {Answer.NO, Answer.NO_SAY}:
                verdict = Verdict.DENY
        return Decision(
            id=new_id("d"),
            verdict=verdict,
            who=Who.PERSON,
            rule=request.tool.name,
            reason="The person said no." if verdict is Verdict.DENY else "yes",
            digest="d",
        )

    async def finish(
        self,
        request: CallRequest,
        decision: Decision,
        outcome: Outcome,
        *,
        seconds: float,
        result: str,
    ) -> Outcome:
        self.finished.append((request.tool.name, outcome))
        return outcome


@dataclass
class FakeServers:
    """Servers whose swaps the test hands over."""

    changed: asyncio.Event = field(default_factory=asyncio.Event)
    swaps: list[Swap] = field(default_factory=list)
    restarted: list[str] = field(default_factory=list)
    wanted: list[tuple[ServerSpec, ...]] = field(default_factory=list)
    stopped: bool = False
    holds: tuple[HeldChange, ...] = ()
    repinned: int = 0

    def offer(self, swap: Swap) -> None:
        self.swaps.append(swap)
        self.changed.set()

    def start(self, specs: Iterable[ServerSpec]) -> None:
        pass

    def retrust(self, name: str) -> None:
        pass

    def held(self) -> tuple[HeldChange, ...]:
        return self.holds

    def repin(self) -> None:
        self.repinned += 1

    def reconcile(self, specs: Iterable[ServerSpec]) -> tuple[Change, ...]:
        self.wanted.append(tuple(specs))
        return ()

    async def settled(self) -> None:
        pass

    async def restart(self, name: str) -> None:
        self.restarted.append(name)

    async def set_enabled(self, name: str, enabled: bool) -> None:
        pass

    async def sign_in(self, command: SignInCommand) -> None:
        raise NotImplementedError

    async def set_log_level(self, name: str, level: str) -> None:
        pass

    async def apply(self, *, wait_restarts: bool = True) -> Iterable[Swap]:
        swaps, self.swaps = self.swaps, []
        self.changed.clear()
        return swaps

    def statuses(self) -> tuple[ServerStatus, ...]:
        return ()

    def log(self, name: str) -> tuple[str, ...]:
        return ()

    def instructions(self) -> tuple[tuple[str, str], ...]:
        return ()

    async def stop(self) -> None:
        self.stopped = True


@dataclass
class FakeTool:
    """A tool that does what the test says."""

    name: str
    work: Callable[[Invocation], Awaitable[ToolResult]]
    risk: Risk = Risk.READ
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    subject: Subject = field(default_factory=lambda: Subject(kind=SubjectKind.ARGUMENTS))

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            description="",
            schema=self.schema,
            risk=self.risk,
            subject=self.subject,
        )

    async def run(self, call: Invocation) -> ToolResult:
        return await self.work(call)


async def _echo(call: Invocation) -> ToolResult:
    return ToolResult(content=(Text(f"echo {call.arguments}"),))


def echo(name: str = "echo", **more: Any) -> FakeTool:
    """Make a tool that gives its arguments back."""
    return FakeTool(name=name, work=_echo, **more)


class Bench:
    """An engine with fakes around it, and every event it told."""

    def __init__(
        self,
        tmp_path: Path,
        *steps: Step,
        tools: Iterable[Tool] = (),
        asks: Iterable[str] = (),
        limits: Limits | None = None,
        resume: str = "",
        interactive: bool = True,
        offers: OfferSource | None = None,
        on_trouble: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.events: list[Event] = []
        self.provider = FakeProvider(list(steps))
        self.servers = FakeServers()
        self.registry = Registry()
        self.registry.replace("builtin", tools)
        self.gates: list[FakeGate] = []
        self.store = SessionStore(tmp_path / "sessions", on_trouble=on_trouble)
        self.redact = Redactor()
        bus = Bus(Screen(self.redact))
        bus.subscribe(self.events.append)

        def gate(session_id: str, asker: Asker | None) -> FakeGate:
            self.gates.append(FakeGate(asker, frozenset(asks)))
            return self.gates[-1]

        self.engine = Engine(
            Parts(
                settings=Settings(limits=limits or Limits()),
                workspace=tmp_path,
                cwd=tmp_path,
                environ={"PATH": "/usr/bin:/bin"},
                bus=bus,
                servers=self.servers,
                registry=self.registry,
                models=FakeModels(self.provider),
                store=self.store,
                history=History(tmp_path / "history.jsonl"),
                gate=gate,
                redact=self.redact,
                resume=resume,
                interactive=interactive,
                offers=offers or NoOffers(),
            )
        )

    def of(self, kind: type[T]) -> list[T]:
        """Give the events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    async def finished(self, count: int = 1) -> RunFinished:
        """Wait for ``count`` runs to end; gives the last."""
        await until(lambda: len(self.of(RunFinished)) >= count)
        return self.of(RunFinished)[count - 1]
