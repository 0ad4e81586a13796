"""A scripted host: records commands, publishes whatever a test says, answers questions."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kage.agent.host import Host
from kage.core import events as ev
from kage.core.commands import AnswerApproval, Command, Interrupt, SubmitPrompt
from kage.core.content import Text, as_text
from kage.core.errors import KageError
from kage.core.events import Event, RunEnd
from kage.core.gate import Answer, CallRequest, Decision, Mode, Question, Verdict, Who
from kage.core.messages import (
    AssistantMessage,
    Message,
    Outcome,
    Stop,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from kage.core.offers import CompletionWish, FilledPrompt, Offers
from kage.core.servers import Fault, ServerState, ServerStatus, Stage
from kage.core.sessions import SessionInfo
from kage.core.tools import Claims, Risk, ServerTool, ToolSpec
from kage.core.undo import UndoItem, UndoPlan
from kage.core.usage import Usage
from kage.providers.base import ModelInfo

WORKSPACE = Path("/work/shop")


class FakeOffers:
    """Offers what a test puts in; keeps what it was asked."""

    def __init__(self) -> None:
        self.held: tuple[Offers, ...] = ()
        self.paths: tuple[str, ...] = ()
        self.values: dict[str, tuple[str, ...]] = {}  # by argument
        self.filled: FilledPrompt | KageError | None = None
        self.wishes: list[CompletionWish] = []
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.walks = 0

    def listed(self) -> tuple[Offers, ...]:
        return self.held

    async def files(self) -> tuple[str, ...]:
        self.walks += 1
        return self.paths

    async def complete(self, wish: CompletionWish) -> tuple[str, ...]:
        self.wishes.append(wish)
        return self.values.get(wish.argument, ())

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str]) -> FilledPrompt:
        self.asked.append((server, name, dict(arguments)))
        if isinstance(self.filled, KageError):
            raise self.filled
        return self.filled or FilledPrompt(server=server, name=name, messages=())


class FakeUndo:
    """Offers the plans a test puts in."""

    def __init__(self) -> None:
        self.plans: dict[str, UndoPlan] = {}
        self.marks: dict[str, str] = {}  # by exposed name

    async def items(self) -> tuple[UndoItem, ...]:
        return tuple(UndoItem(record=plan.record, why=plan.why) for plan in self.plans.values())

    async def plan(self, record: str) -> UndoPlan:
        return self.plans[record]

    def broken_claim(self, spec: ToolSpec) -> str:
        return self.marks.get(spec.name, "")


class FakeHost:
    """Implements ``Host``; nothing happens in it but what a test makes happen."""

    def __init__(
        self,
        *,
        model: str = "test:model",
        servers: tuple[ServerStatus, ...] = (),
        tools: tuple[ToolSpec, ...] = (),
        models: tuple[ModelInfo, ...] = (),
        sessions: tuple[SessionInfo, ...] = (),
        history: tuple[str, ...] = (),
        logs: Mapping[str, tuple[str, ...]] | None = None,
        on_send: Callable[[FakeHost, Command], None] | None = None,
        fail_start: Exception | None = None,
        closing: float = 0.0,
    ) -> None:
        self.workspace = WORKSPACE
        self.model = model
        self.mode = Mode.DEFAULT
        self.running = False
        self.sent: list[Command] = []
        self.restarted: list[tuple[str, bool]] = []
        self.started = asyncio.Event()
        self.may_start = asyncio.Event()
        self.may_start.set()
        self.closed = 0
        self.offers = FakeOffers()
        self.undo = FakeUndo()
        self.said: tuple[Message, ...] = ()
        self.deferred: frozenset[str] = frozenset()
        self._servers = {server.name: server for server in servers}
        self._tools = tools
        self._models = models
        self._sessions = sessions
        self._history = history
        self._logs = dict(logs or {})
        self._on_send = on_send
        self._fail_start = fail_start
        self._closing = closing  # seconds
        self._listeners: list[Callable[[Event], None]] = []

    # what a front end sees

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def send(self, command: Command) -> None:
        self.sent.append(command)
        if self._on_send is not None:
            self._on_send(self, command)

    async def start(self) -> None:
        await self.may_start.wait()
        if self._fail_start is not None:
            raise self._fail_start
        self.publish(ev.SessionOpened(session_id="s1", title=""))
        self.publish(ev.ModelChanged(model=self.model, reason="chosen for the test"))
        for server in tuple(self._servers.values()):
            self.publish(ev.ServerChanged(status=server, previous=None))
        self.started.set()

    async def close(self) -> None:
        self.closed += 1
        await asyncio.sleep(self._closing)

    def messages(self) -> tuple[Message, ...]:
        return self.said

    def tools(self) -> tuple[ToolSpec, ...]:
        return self._tools

    def unlisted(self) -> frozenset[str]:
        return self.deferred

    def servers(self) -> tuple[ServerStatus, ...]:
        return tuple(self._servers.values())

    def server_log(self, name: str) -> tuple[str, ...]:
        return self._logs.get(name, ())

    async def restart_server(self, name: str, *, fresh: bool = False) -> None:
        self.restarted.append((name, fresh))

    async def models(self) -> tuple[ModelInfo, ...]:
        return self._models

    async def sessions(self) -> tuple[SessionInfo, ...]:
        return self._sessions

    async def history(self) -> tuple[str, ...]:
        return self._history

    # what a test says

    def publish(self, *events: Event) -> None:
        """Tell every listener."""
        for event in events:
            if isinstance(event, ev.RunStarted):
                self.running = True
            if isinstance(event, ev.RunFinished):
                self.running = False
            if isinstance(event, ev.ServerChanged):
                self._servers[event.status.name] = event.status
            for listener in tuple(self._listeners):
                listener(event)

    def commands(self, kind: type[Command]) -> list[Any]:
        """Give what was sent of one kind."""
        return [command for command in self.sent if isinstance(command, kind)]

    @property
    def prompts(self) -> list[str]:
        """The prompts that were sent."""
        return [as_text(command.content) for command in self.commands(SubmitPrompt)]

    @property
    def answers(self) -> list[tuple[str, Answer]]:
        """The answers that were given."""
        return [(c.question_id, c.reply.answer) for c in self.commands(AnswerApproval)]

    def start_run(self, prompt: str = "hello", *, message_id: str = "r1") -> None:
        """Begin a run whose reply may stream."""
        self.publish(
            ev.MessageAppended(message=UserMessage(content=(Text(prompt),))),
            ev.RunStarted(run_id="run1"),
            ev.TurnStarted(run_id="run1", turn=1, message_id=message_id, model=self.model),
        )

    def finish_run(
        self, end: RunEnd = RunEnd.DONE, what: str = "", why: str = "", fix: str = ""
    ) -> None:
        """End the run."""
        self.publish(
            ev.RunFinished(
                run_id="run1", end=end, usage=Usage(input=10, output=5), cost=0.03, turns=1,
                refused=0, seconds=1.0, what=what, why=why, fix=fix,
            )
        )  # fmt: skip

    def reply(
        self,
        text: str,
        *,
        message_id: str = "r1",
        stop: Stop = Stop.END,
        calls: tuple[ToolCall, ...] = (),
    ) -> None:
        """Append a finished reply."""
        self.publish(
            ev.MessageAppended(
                message=AssistantMessage(
                    id=message_id, parts=(Text(text), *calls), model=self.model, stop=stop
                )
            )
        )


_: type[Host] = FakeHost


def tool(
    name: str = "read_file", *, server: str = "filesystem", description: str = "Reads a file",
    claims: Claims | None = None,
) -> ToolSpec:  # fmt: skip
    """Make a server's tool."""
    return ToolSpec(
        name=f"{server}__{name}", description=description, schema={"type": "object"},
        risk=Risk.EXEC,
        server=ServerTool(
            server=server, origin="user", original=name, entry_hash="e", pin="p", connection="c",
            claims=claims or Claims(read_only=True),
        ),
    )  # fmt: skip


def question(
    name: str = "q1", *, spec: ToolSpec | None = None, arguments: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Question:  # fmt: skip
    """Make a question about a server's tool."""
    spec = spec or tool()
    made = Question(
        id=name,
        request=CallRequest(
            call_id=f"call-{name}", tool=spec, workspace=WORKSPACE,
            arguments=arguments if arguments is not None else {"path": "tests/test_cart.py"},
        ),
        digest="0" * 64, reason="every MCP tool asks", scopes=(spec.name,),
        pinned_since="2026-11-12",
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def asked(made: Question) -> ev.ApprovalRequested:
    """Make the event that asks it."""
    return ev.ApprovalRequested(question=made)


def decision(*, allow: bool = True) -> Decision:
    """Make a person's decision."""
    return Decision(
        id="d1", verdict=Verdict.ALLOW if allow else Verdict.DENY, who=Who.PERSON, rule="",
        reason="you allowed it" if allow else "you refused it", digest="0" * 64,
    )  # fmt: skip


def server(
    name: str = "weather", state: ServerState = ServerState.CONNECTED, *, tools: int = 3,
    fault: Fault | None = None, **changes: Any,
) -> ServerStatus:  # fmt: skip
    """Make a server's status."""
    made = ServerStatus(
        name=name, origin="user", state=state, since=time.monotonic(), command=f"npx -y {name}",
        pid=4711, protocol="2025-11-25", version=f"{name} 1.0", tools=tools, fault=fault,
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def fault(**changes: Any) -> Fault:
    """Make a fault as a server that exits at once has it."""
    made = Fault(
        stage=Stage.HANDSHAKE, what="weather ended before it answered", why="API_KEY is not set",
        fix="Set API_KEY in [mcp.servers.weather.env]", exit_code=1, stderr=("Error: no API_KEY",),
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def call(name: str = "filesystem__read_file", call_id: str = "c1", **arguments: Any) -> ToolCall:
    """Make a tool call."""
    return ToolCall(id=call_id, name=name, arguments=arguments or {"path": "tests/test_cart.py"})


def result(
    text: str = "18 matches", call_id: str = "c1", outcome: Outcome = Outcome.OK, **changes: Any
) -> ToolMessage:
    """Make what a call gave back."""
    made = ToolMessage(
        call_id=call_id, name="filesystem__read_file", outcome=outcome, content=(Text(text),),
        seconds=0.031, summary=text.splitlines()[0] if text else "",
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def interrupts(host: FakeHost) -> int:
    """Count the interrupts."""
    return len(host.commands(Interrupt))
