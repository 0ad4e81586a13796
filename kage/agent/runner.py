"""One run at a time: prompts start it, join it or wait for it; interrupting ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any

from kage.agent.arguments import Checker
from kage.agent.boundary import Boundary
from kage.agent.calls import Calls
from kage.agent.conversation import Conversation
from kage.agent.deferral import Deferral
from kage.agent.effects import Effects
from kage.agent.loop import Loop, Turn
from kage.agent.outgoing import Outgoing
from kage.agent.parts import Parts
from kage.agent.results import PER_TOKEN, Desk
from kage.agent.seat import Seat
from kage.agent.shell import run_shell
from kage.agent.supervisor import own_mistake
from kage.core.attachments import typed
from kage.core.content import Text, as_text
from kage.core.errors import KageError
from kage.core.events import PromptsWaiting, RunEnd, RunFinished, RunStarted
from kage.core.ids import new_id
from kage.core.messages import ToolCall, UserMessage
from kage.core.unsettled import unsettled
from kage.core.usage import Usage
from kage.sessions.artifacts import Artifacts

Expand = Callable[[UserMessage], Awaitable[UserMessage]]


class Runner:
    """Owns the task of the current run."""

    def __init__(
        self,
        parts: Parts,
        conversation: Conversation,
        seat: Seat,
        boundary: Boundary,
        deferral: Deferral,
    ) -> None:
        self._parts = parts
        self._publish = parts.bus.publish
        self._conversation = conversation
        self._seat = seat
        self._boundary = boundary
        self._deferral = deferral
        self._checker = Checker()
        self._outgoing = Outgoing(parts.redact)
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._steering: list[UserMessage] = []
        self._queued: list[UserMessage] = []
        self._effects: Callable[[], Effects] | None = None
        self._expand: Expand | None = None
        self._as_is: set[str] = set()  # messages nothing is to be attached to
        self._attaching = ""  # the message something is being attached to
        self._ending = False  # what waits is forgotten
        self.idle = asyncio.Event()
        self.idle.set()

    @property
    def running(self) -> bool:
        """Whether a run is on."""
        return self._task is not None

    def expand_with(self, expand: Expand) -> None:
        """Let ``expand`` attach what messages name, from now on."""
        self._expand = expand

    def watch_with(self, effects: Callable[[], Effects]) -> None:
        """Let what calls do to files be looked after by ``effects``, from now on."""
        self._effects = effects

    def submit(self, message: UserMessage, *, queue: bool, as_is: bool = False) -> None:
        """Start a run with ``message``, or let it join the next turn or wait for the next run.

        Args:
            message: What is said.
            queue: Wait for the next run, while one is on.
            as_is: Nothing is attached to it.
        """
        if as_is or not _names_something(message):
            self._as_is.add(message.id)
        if self._task is None:
            self._start(self._work([message]))
            return
        (self._queued if queue else self._steering).append(message)
        self._tell_waiting()

    def shell(self, line: str) -> None:
        """Run the person's own shell line.

        Raises:
            KageError: a run is on.
        """
        if self._task is not None:
            raise KageError("A run is on", fix="Interrupt it first (esc), then run the command.")
        self._start(self._shell(line))

    def repeat(self, call_id: str) -> None:
        """Make a call whose outcome is unknown once more, as the person asks for it.

        Raises:
            KageError: a run is on, or there is no such call.
        """
        if self._task is not None:
            raise KageError("A run is on", fix="Interrupt it first (esc), then retry the call.")
        calls = (item for item in unsettled(self._conversation.messages))
        found = next((item for item in calls if item.call.id == call_id), None)
        if found is None:
            raise KageError("There is no such call with an unknown outcome")
        if found.obstacle:
            raise KageError(
                "The call cannot be made again as it was",
                why=found.obstacle,
                fix="Ask the model for the call again.",
            )
        call = replace(found.call, id=new_id("c"))
        said = f"Make the call of {call.name} whose outcome is unknown once more, unchanged."
        message = UserMessage(content=(Text(said),))
        self._as_is.add(message.id)
        self._start(self._work([message], first=call))

    def interrupt(self) -> None:
        """Stop the run, once; prompts that wait start the next one."""
        if self._task is not None and not self._task.cancelling():
            self._task.cancel()

    async def end(self) -> None:
        """Stop the run, forget what waits, and wait until nothing runs."""
        self._ending = True
        self.interrupt()
        await self.idle.wait()
        self._ending = False

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self.idle.clear()
        self._task = asyncio.create_task(self._guard(work))

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            pass  # interrupted outside the loop, which tells of its own end
        except Exception as error:  # a mistake of kage's own ends the run, and is told
            self._publish(_broke(error))
        finally:
            self._task = None
            if self._ending:
                self._steering.clear()
                self._queued.clear()
            prompts = self._join() or self._next()
            if prompts:  # they came during a shell line, or while something was attached
                self._start(self._work(prompts))
            else:
                self.idle.set()
            await self._seat.release()

    async def _work(self, prompts: list[UserMessage], *, first: ToolCall | None = None) -> None:
        while prompts:
            run_id, trouble = new_id("r"), await self._say_all(prompts)
            self._publish(RunStarted(run_id=run_id))
            self._publish(trouble or await self._loop().run(run_id, first=first))
            first = None
            _forget_interrupt()
            prompts = self._join() or self._next()

    def _loop(self) -> Loop:
        parts, talk = self._parts, self._conversation
        assert self._effects is not None
        calls = Calls(
            gate=talk.gate,
            session=talk.session,
            workspace=parts.workspace,
            publish=self._publish,
            redact=parts.redact,
            checker=self._checker,
            environment=parts.agent_environment,
            desk=Desk(
                artifacts=Artifacts(talk.session.artifacts),
                redact=parts.redact,
                limit=parts.settings.limits.max_output_tokens * PER_TOKEN,
            ),
            writing=self._writing,
            effects=self._effects(),
        )
        return Loop(
            session=talk.session,
            publish=self._publish,
            boundary=self._turn,
            calls=calls,
            kept=talk.messages.append,
            waiting=lambda: bool(self._steering),
            measured=talk.measure,
            max_turns=parts.settings.limits.max_turns,
            max_cost=parts.settings.limits.max_cost,
        )

    async def _turn(self) -> Turn:
        """Apply what is queued, let waiting prompts join, put the next turn together."""
        if self._parts.wait_for_servers:
            await self._parts.servers.settled()
        await self._boundary.apply(wait_restarts=True)
        provider = await self._seat.provider()
        while self._steering:  # one by one: what does not get its turn waits on
            message = self._steering.pop(0)
            self._tell_waiting()
            await self._say(message)
        tools = self._parts.registry.snapshot()
        self._deferral.follow(self._conversation.messages)
        offer = self._deferral.offer(tools, provider.info)
        return Turn(
            provider=provider,
            system=self._parts.redact(self._boundary.system(index=offer.index)),
            messages=self._outgoing(self._conversation.messages, provider.info),
            tools=tools,
            offered=offer.specs,
        )

    async def _say_all(self, prompts: list[UserMessage]) -> RunFinished | None:
        """Say what starts a run; gives its end when one of them cannot be sent."""
        trouble: KageError | None = None
        while prompts:
            message = prompts.pop(0)
            try:
                await self._say(message)
            except KageError as error:
                trouble = error
            except asyncio.CancelledError:
                self._steering[:0] = prompts
                raise
        return None if trouble is None else _ended(trouble.what, trouble.why, trouble.fix)

    async def _say(self, message: UserMessage) -> None:
        """Attach what the message names, then write it down; without that, if it fails."""
        expand = None if message.id in self._as_is else self._expand
        self._as_is.discard(message.id)
        self._attaching = as_text(message.content) if expand is not None else ""
        try:
            if expand is not None:
                self._tell_waiting()
                message = await expand(message)
        finally:
            self._conversation.say(message)
            if self._attaching:
                self._attaching = ""
                self._tell_waiting()

    def _join(self) -> list[UserMessage]:
        joined, self._steering = self._steering, []
        if joined:
            self._tell_waiting()
        return joined

    def _next(self) -> list[UserMessage]:
        if not self._queued:
            return []
        message = self._queued.pop(0)
        self._tell_waiting()
        return [message]

    def _tell_waiting(self) -> None:
        self._publish(
            PromptsWaiting(
                steering=tuple(filter(None, (self._attaching, *map(_words, self._steering)))),
                queued=tuple(map(_words, self._queued)),
            )
        )

    async def _shell(self, line: str) -> None:
        text = await run_shell(line, workspace=self._parts.workspace, environ=self._parts.environ)
        self._conversation.say(UserMessage(content=(Text(self._parts.redact(text)),)))


def _words(message: UserMessage) -> str:
    return typed(message.content)


def _names_something(message: UserMessage) -> bool:
    """Say whether a typed message can hold a mention, or be a prompt of a server."""
    return any(
        isinstance(part, Text) and ("@" in part.text or part.text.startswith("/"))
        for part in message.content[:1]
    )


def _forget_interrupt() -> None:
    """Let the task of an interrupted run go on with the next prompt."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()


def _broke(error: Exception) -> RunFinished:
    return _ended(own_mistake(error), "", "The session is saved up to here; send the prompt again.")


def _ended(what: str, why: str, fix: str) -> RunFinished:
    """Tell of a run that failed before its first turn."""
    return RunFinished(
        run_id="",
        end=RunEnd.FAILED,
        usage=Usage(),
        cost=None,
        turns=0,
        refused=0,
        seconds=0.0,
        what=what,
        why=why,
        fix=fix,
    )
