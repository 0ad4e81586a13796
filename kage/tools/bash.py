"""The bash tool: run a shell line in a process group of its own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kage.core.content import Text
from kage.core.errors import ToolError
from kage.core.messages import Outcome
from kage.core.processes import Spawner
from kage.core.sandbox import MEANING, Cage, SandboxRefused
from kage.core.sanitise import clip, visible
from kage.core.tools import Invocation, Risk, Subject, SubjectKind, ToolResult, ToolSpec
from kage.tools import arguments, programs
from kage.tools.described import count, description, schema, words

if TYPE_CHECKING:
    from kage.tools.capture import Capture

DEFAULT_TIMEOUT = 120  # seconds
MAX_TIMEOUT = 600
MAX_COMMAND = 120_000  # bytes; Linux takes 128 KiB in one argument
_CHUNK = 1 << 16
_DRAIN = 0.5  # seconds the pipe is read on after the shell has ended
_LOOKS, _LOOK = 10, 0.01  # how often, and seconds between two
_NAMED = 5  # processes that are named when they run on
_GRACE = 1.0  # seconds between TERM and KILL

# What a shell needs to find programs and speak the person's language. Everything else, keys and
# tokens above all, stays with kage (SECURITY T11).
_PASSED = frozenset(
    (
        *("HOME", "LOGNAME", "USER", "SHELL", "PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR"),
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"),
        *("XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "VIRTUAL_ENV"),
    )
)
_FIXED = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


class Bash:
    """Runs shell lines; whatever a line started ends with it."""

    def __init__(
        self,
        *,
        spawner: Spawner,
        environ: Mapping[str, str],
        max_output_chars: int,
        cage: Cage | None = None,
    ) -> None:
        self._spawner = spawner
        self._shell = programs.which("bash", environ) or "/bin/sh"
        self._environ = shell_environment(environ)
        self._limit = max_output_chars
        self._cage = cage if cage is not None and cage.level != "none" else None
        self.spec = ToolSpec(
            name="bash",
            title="Run a shell command",
            description=description("bash") + _in_sandbox(self._cage),
            schema=schema(
                ("command",),
                command=words("The shell line to run."),
                timeout=count(
                    "Seconds after which it is ended.",
                    low=1,
                    high=MAX_TIMEOUT,
                    default=DEFAULT_TIMEOUT,
                ),
            ),
            risk=Risk.EXEC,
            subject=Subject(kind=SubjectKind.COMMAND, argument="command"),
            sandbox=self._cage.level if self._cage is not None else "",
        )

    async def run(self, call: Invocation) -> ToolResult:
        """Run the line; a non-zero exit is a failed result that carries the output.

        Raises:
            ToolError: the shell could not be started.
        """
        from kage.tools.capture import Capture  # with the first call: hosts start faster

        command = arguments.text(call.arguments, "command")
        seconds = arguments.number(
            call.arguments, "timeout", DEFAULT_TIMEOUT, low=1, high=MAX_TIMEOUT
        )
        process = await self._start(call, _checked(command))
        capture = Capture(
            limit=self._limit - 500,
            scratch=call.scratch,
            name=call.call_id,
            live=call.output,
            redact=call.redact,
        )
        ended = asyncio.ensure_future(programs.exited(process))
        reading = asyncio.ensure_future(_read(process, capture))
        timed_out = False
        try:
            async with asyncio.timeout(seconds):
                await asyncio.wait((ended,))
        except TimeoutError:
            timed_out = True
        finally:
            await programs.settle(
                asyncio.ensure_future(self._finish(process, ended, reading, capture))
            )
        return _result(capture, process.returncode, seconds if timed_out else None)

    async def _start(self, call: Invocation, command: str) -> asyncio.subprocess.Process:
        env: Mapping[str, str] = {**self._environ, **call.environment}
        argv: tuple[str, ...] = (self._shell, "-c", command)
        try:
            if self._cage is not None:
                wrapped = await self._cage.around(
                    argv, env, workspace=call.workspace, name="bash", show=(call.scratch,)
                )
                argv, env = wrapped.argv, wrapped.env
            process = await self._spawner.spawn(
                argv,
                cwd=call.workspace,
                env=env,
                stderr=asyncio.subprocess.STDOUT,
                limit=_CHUNK,
            )
        except OSError as error:
            raise ToolError(
                "The shell could not be started", why=error.strerror or str(error)
            ) from error
        except SandboxRefused as error:
            raise ToolError(error.what, why=error.why, fix=error.fix) from error
        if process.stdin is not None:
            process.stdin.close()
        return process

    async def _finish(
        self,
        process: asyncio.subprocess.Process,
        ended: asyncio.Future[int],
        reading: asyncio.Future[None],
        capture: Capture,
    ) -> None:
        """End the group, read what is still in the pipe, and close the capture."""
        by_itself = ended.done()
        try:
            if by_itself:
                await asyncio.wait((reading,), timeout=_DRAIN)
                capture.survivors = not reading.done() or await _goes_on(process.pid)
            await self._spawner.end(process, grace=_GRACE)
            strays = await self._spawner.strays(process)
            if by_itself:
                capture.strays = strays
            else:
                _kill(strays)
            await asyncio.wait((reading,), timeout=_DRAIN)
        finally:
            reading.cancel()
            ended.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading
            capture.close()


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _in_sandbox(cage: Cage | None) -> str:
    if cage is None:
        return ""
    return f"\n\nIt runs in a sandbox: {MEANING[cage.level]}; keys and kage's files are hidden."


def shell_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Give what of ``environ`` a shell of the agent sees; no secrets, no terminal."""
    passed = {
        name: value for name, value in environ.items() if name in _PASSED or name.startswith("LC_")
    }
    return {**passed, **_FIXED}


def _checked(command: str) -> str:
    if "\0" in command:
        raise ToolError("The command holds a NUL character, which no command can have")
    try:
        length = len(command.encode())
    except UnicodeEncodeError as error:
        raise ToolError("The command holds half a surrogate pair") from error
    if length > MAX_COMMAND:
        raise ToolError(
            f"The command is {length:,} bytes long; the limit is {MAX_COMMAND:,}",
            fix="Write it to a script with write, then run the script",
        )
    return command


async def _read(process: asyncio.subprocess.Process, capture: Capture) -> None:
    if process.stdout is None:
        return
    while data := await process.stdout.read(_CHUNK):
        capture.feed(data)


async def _goes_on(leader: int) -> bool:
    """Say whether the group lives on; what makes a sandbox takes a moment to go."""
    for _ in range(_LOOKS):
        if not programs.group_lives(leader):
            return False
        await asyncio.sleep(_LOOK)
    return True


def _result(capture: Capture, code: int | None, timed_out: int | None) -> ToolResult:
    notes: list[str] = []
    if timed_out is not None:
        plural = "" if timed_out == 1 else "s"
        summary = f"timed out after {timed_out} second{plural}"
        notes.append(f"[{summary}; the command and everything it started were ended]")
    elif code is not None and code < 0:
        summary = f"ended by {_signal_name(-code)}"
        notes.append(f"[{summary}]")
    else:
        summary = f"exit code {code}"
        if code:
            notes.append(f"[{summary}]")
    if capture.survivors:
        notes.append("[Processes left in the background were ended with the command]")
    for pid, line in itertools.islice(capture.strays.items(), _NAMED):
        shown = clip(visible(line, single_line=True), 200)
        notes.append(f"[Process {pid} detached itself and runs on until kage ends: {shown}]")
    if (more := len(capture.strays) - _NAMED) > 0:
        notes.append(f"[{more} more did]")
    body = capture.text()
    text = "\n".join(part for part in (body.rstrip("\n") or "(no output)", *notes) if part)
    failed = timed_out is not None or code != 0
    return ToolResult(
        content=(Text(text),),
        outcome=Outcome.TOOL_ERROR if failed else Outcome.OK,
        summary=summary,
    )


def _signal_name(number: int) -> str:
    try:
        return f"signal {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}"
