"""One run without a screen (``kage -p``): the result on stdout, everything else on stderr."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from enum import IntEnum

from kage.agent.host import Host
from kage.core.commands import Interrupt, SubmitPrompt
from kage.core.content import Text
from kage.core.events import (
    DefinitionsHeld,
    Event,
    MessageAppended,
    ModelRetried,
    Noticed,
    RunEnd,
    RunFinished,
    ServerChanged,
)
from kage.core.levels import Level
from kage.core.messages import AssistantMessage, Outcome, ToolMessage
from kage.core.pins import HeldChange
from kage.core.sanitise import visible
from kage.core.servers import ServerState, ServerStatus
from kage.plain import pins
from kage.plain.jsonl import to_line

_TOLD = (ServerState.FAILED, ServerState.CONNECTING, ServerState.UNTRUSTED, ServerState.NEEDS_AUTH)
_BROKEN = (ServerState.FAILED, ServerState.CONNECTING)
_REFUSED = "kage refused this call: "  # how the gate tells the model


class Exit(IntEnum):
    """Exit codes of ``kage -p`` (DESIGN section 9)."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    SERVER_DOWN = 3
    REFUSED = 4
    INTERRUPTED = 130


@dataclass(slots=True, kw_only=True)
class _Printer:
    """Folds events into what is printed, and remembers how the run ended."""

    as_json: bool
    redact: Callable[[str], str]
    finished: asyncio.Future[RunFinished]
    text: str = ""
    told: set[tuple[str, str]] = field(default_factory=set)

    def __call__(self, event: Event) -> None:
        if self.as_json and not self.finished.done():  # how it ended is the last line
            _out(self.redact(to_line(event)))
        match event:
            case MessageAppended(message=AssistantMessage() as message):
                self.text = message.text or self.text
            case MessageAppended(message=ToolMessage() as message):
                self._refusal(message)
            case ServerChanged(status=status):
                self._server(status)
            case Noticed():
                self._notice(event)
            case DefinitionsHeld(changes=changes):
                for change in changes:
                    self._held(change)
            case ModelRetried():
                self._say(f"{event.reason}; trying again in {event.seconds:.0f} s")
            case RunFinished() if not self.finished.done():
                self.finished.set_result(event)
            case _:
                pass

    def _refusal(self, message: ToolMessage) -> None:
        if message.outcome is Outcome.REFUSED:
            first = message.content[0] if message.content else None
            why = first.text.removeprefix(_REFUSED) if isinstance(first, Text) else ""
            self._say(f"refused {message.name}: {why}" if why else f"refused {message.name}")

    def _server(self, status: ServerStatus) -> None:
        for reason in status.dropped:
            text = f"server {status.name}: left out {reason}"
            self._once(status.name, text, text)
        if status.fault is None or status.state not in _TOLD:
            return
        # every further try may end the same way; that is one fault
        self._once(status.name, status.fault.what, server_failure(status))

    def _held(self, change: HeldChange) -> None:
        what = "changed" if change.passed else "holds"
        text = "\n  | ".join(
            [f"server {change.server} {what} {pins.headline(change)}", *pins.lines(change)]
        )
        if not change.passed:
            text += f"\n  To decide: kage mcp pins accept {change.server} (or refuse, disable)"
        self._once(change.server, f"{change.name}\0{change.digest}", text)

    def _notice(self, notice: Noticed) -> None:
        if notice.level is not Level.INFO:
            self._say(told(notice.what, notice.why, notice.fix))

    def _once(self, name: str, what: str, text: str) -> None:
        if (name, what) not in self.told:
            self.told.add((name, what))
            self._say(text)

    def _say(self, text: str) -> None:
        complain(self.redact(text))


async def run(
    host: Host,
    prompt: str,
    *,
    piped: str = "",
    as_json: bool,
    redact: Callable[[str], str],
    settled: Callable[[], Awaitable[None]],
    required: Collection[str],
) -> Exit:
    """Work on ``prompt`` and give the exit code; the host is closed in any case.

    ``piped`` goes with the prompt as data: nothing it mentions is attached. ``settled`` waits for
    the eager servers; when one of ``required`` is down then, nothing runs.
    """
    loop = asyncio.get_running_loop()
    printer = _Printer(as_json=as_json, redact=redact, finished=loop.create_future())
    stop = asyncio.Event()
    host.subscribe(printer)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, _asked_to_stop, stop, number)
    try:
        await host.start()
        if not await _unless(stop, settled()):
            return Exit.INTERRUPTED
        wanted = [status for status in host.servers() if status.name in required]
        down = [status.name for status in wanted if status.state is not ServerState.CONNECTED]
        held = [status.name for status in wanted if status.held]
        if down:
            who = "servers" if len(down) > 1 else "server"
            names, verb = ", ".join(down), "are" if len(down) > 1 else "is"
            complain(f"required {who} {names} {verb} not up; nothing was sent to the model")
            return Exit.SERVER_DOWN
        if held:
            whose = ", ".join(held)
            complain(f"definitions of required servers are held ({whose}); nothing was sent")
            return Exit.SERVER_DOWN
        parts = (Text(prompt), Text(f"\n{piped}")) if piped else (Text(prompt),)
        host.send(SubmitPrompt(content=parts))
        if not await _unless(stop, asyncio.shield(printer.finished)):
            host.send(Interrupt())
            await asyncio.wait_for(asyncio.shield(printer.finished), 5)
        finished = printer.finished.result()
    except TimeoutError:
        return Exit.INTERRUPTED
    finally:
        await host.close()
    if not as_json and printer.text:
        _out(visible(redact(printer.text)))
    return _code(finished)


def _asked_to_stop(stop: asyncio.Event, number: int) -> None:
    """Begin an orderly stop; a second ctrl+c ends at once and leaves servers to the watchdog."""
    if stop.is_set() and number == signal.SIGINT:
        os._exit(Exit.INTERRUPTED)
    stop.set()


async def _unless(stop: asyncio.Event, work: Awaitable[object]) -> bool:
    """Wait for ``work`` and say True, or False when ``stop`` comes first."""
    working = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
            return True
        return False
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)


def _code(finished: RunFinished) -> Exit:
    match finished.end:
        case RunEnd.DONE:
            return Exit.REFUSED if finished.refused else Exit.DONE
        case RunEnd.INTERRUPTED:
            complain("interrupted")
            return Exit.INTERRUPTED
        case RunEnd.FAILED | RunEnd.LIMIT:
            complain(told(finished.what, finished.why, finished.fix))
            return Exit.FAILED


def told(what: str, why: str, fix: str) -> str:
    """Put the three parts of a message into one line."""
    text = f"{what}: {why}" if why else what
    return f"{text}. {fix}" if fix else text


def server_failure(status: ServerStatus) -> str:
    """Say why a server is not up, and what to do."""
    fault = status.fault
    if fault is None:
        return f"server {status.name}: {status.state.value}"
    ended = "failed" if status.state in _BROKEN else "is not started"
    text = f"server {status.name} {ended} ({fault.stage.value}): {fault.what}"
    if fault.why:
        text += f": {fault.why}"
    if status.state is ServerState.CONNECTING and status.attempts:
        text += f"; try {status.attempt} of {status.attempts} is under way"
    for line in fault.stderr[-20:]:
        text += f"\n  | {line}"
    return f"{text}\n  {fault.fix}" if fault.fix else text


def complain(text: str) -> None:
    """Write a line for the person to stderr, control characters made visible."""
    print(f"kage: {visible(text)}", file=sys.stderr, flush=True)


def _out(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115 - stays open until the process ends
