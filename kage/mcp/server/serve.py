"""``kage mcp serve``: answer one MCP client over stdin and stdout until it goes away."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

from kage.mcp.server.service import Service
from kage.mcp.server.session import Session
from kage.mcp.server.wire import Wire

GRACE = 5.0  # seconds running calls may take after the end of input
_FLUSH = 5.0  # seconds the client may take to read the last answers
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def serve(
    service: Service,
    *,
    on_stop: Callable[[], Awaitable[None]] | None = None,
    stdin: int = 0,
    stdout: int = 1,
) -> int:
    """Serve until the input ends or a signal comes, and give the exit code.

    Args:
        service: What is offered, and who judges.
        on_stop: Ends what the tools started; runs on the same loop, at the end.
        stdin: Where messages come from. While 0 is served, children read nothing from it.
        stdout: Where answers go. While 1 is served, a stray print goes to stderr.

    Raises:
        KageError: what ``service`` brings cannot be used, found after the first answer; or there
            is nobody to talk to.
    """
    if (stdin == 0 and sys.stdin is None) or (stdout == 1 and sys.stdout is None):
        from kage.core.errors import UsageError

        raise UsageError(
            "There is no client",
            why="MCP is spoken over stdin and stdout, and one of them is closed",
        )
    with _guarded(stdin, stdout) as (source, sink):
        loop = asyncio.new_event_loop()
        try:
            failure = loop.run_until_complete(_serve(service, source, sink, on_stop))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()
    if failure is not None:
        raise failure
    _leave_threads_behind(alone=(stdin, stdout) == (0, 1))
    return 0


async def _serve(
    service: Service,
    source: int,
    sink: int,
    on_stop: Callable[[], Awaitable[None]] | None,
) -> Exception | None:
    """Serve; gives what made it impossible."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    signalled: list[int] = []
    failures: list[Exception] = []

    def stop(number: int) -> None:
        signalled.append(number)
        ended.set()

    def fail(error: Exception) -> None:
        failures.append(error)
        ended.set()

    wire = Wire(source, sink, on_end=ended.set)
    session = Session(service, wire.send, fail, wire.room)
    caught = _SIGNALS if threading.current_thread() is threading.main_thread() else ()
    for number in caught:
        loop.add_signal_handler(number, stop, number)
    try:
        wire.start(on_lines=session.lines, on_too_long=session.too_long)
        await ended.wait()
        wire.stop_reading()
        hurry = bool(signalled or failures or wire.broken)
        await _finish(session, 0.0 if hurry else GRACE, ended)
        await wire.drain(_FLUSH)
    finally:
        wire.close()
        if on_stop is not None:
            await on_stop()
        for number in caught:
            loop.remove_signal_handler(number)
    return failures[0] if failures else None


async def _finish(session: Session, grace: float, ended: asyncio.Event) -> None:
    """Let calls end; a signal or a lost client meanwhile ends them at once."""
    ended.clear()
    finishing = asyncio.ensure_future(session.finish(grace))
    waiting = asyncio.ensure_future(ended.wait())
    await asyncio.wait((finishing, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not finishing.done():
        finishing.cancel()
        await session.finish(0.0)


@contextmanager
def _guarded(stdin: int, stdout: int) -> Iterator[tuple[int, int]]:
    """Keep the protocol's descriptors to ourselves: others find nothing at 0, and stderr at 1."""
    taken: list[tuple[int, int]] = []  # (standard descriptor, our copy of it)
    source, sink = stdin, stdout
    try:
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            if stdin == 0:
                source = os.dup(0)
                taken.append((0, source))
                os.dup2(null, 0)
            if stdout == 1:
                sys.stdout.flush()
                sink = os.dup(1)
                taken.append((1, sink))
                try:
                    os.dup2(2, 1)
                except OSError:  # started without a stderr
                    os.dup2(null, 1)
        finally:
            os.close(null)
        yield source, sink
    finally:
        for standard, copy in taken:
            if standard == 1:
                _flush_stray()
            os.dup2(copy, standard)
            os.close(copy)


def _flush_stray() -> None:
    """Send what was printed by mistake where it belongs, before 1 is the protocol's again."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()


def _leave_threads_behind(*, alone: bool) -> None:
    """End the process now when a worker thread does not: the client waits for our exit."""
    deadline = time.monotonic() + 1.0
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive() and alone:
                sys.stderr.flush()
                os._exit(0)
