"""Run the app on a real terminal: signals, stderr, and what is left on the screen afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from kage.core.sanitise import visible
from kage.core.servers import ServerState, ServerStatus
from kage.tui.app import KageApp
from kage.tui.stderr import redirected

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
PATIENCE = 1.0  # seconds of closing without a word
_RUNNING = (ServerState.CONNECTED, ServerState.CONNECTING, ServerState.DRAINING)
REPLAYED = 50  # stderr lines of each failed server

log = logging.getLogger("kage")


def run(app: KageApp, *, log_file: Path, redirect: bool = True) -> int:
    """Run ``app`` until it ends; give the exit code.

    Args:
        app: The app, not yet running.
        log_file: Where stderr and kage's own log go while the UI is up.
        redirect: False leaves file descriptor 2 alone (``--inherit-stderr``).
    """
    with _logging_to(log_file):
        with redirected(log_file) if redirect else contextlib.nullcontext(2) as stderr:
            code = asyncio.run(_main(app, stderr))
        _say_goodbye(app, log_file)
    return code


async def _main(app: KageApp, stderr: int) -> int:
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, app.stop_for, number)
    try:
        value = await app.run_async()
    finally:
        # ctrl+c from now on leaves at once, and the watchdog ends the servers; other signals often
        # come in pairs when a window closes
        loop.add_signal_handler(signal.SIGINT, os._exit, 128 + signal.SIGINT)
        try:
            # the screen is given back by now, whatever happened; servers end in any case
            await _close(app, stderr)
        finally:
            app.link.detach()
            for number in SIGNALS:
                loop.remove_signal_handler(number)
    if app.crashed is not None:
        return 1
    return value if value is not None else (app.return_code or 0)


async def _close(app: KageApp, stderr: int) -> None:
    """End the servers; where that takes a while, say on the given-back screen what is going on."""
    closing = asyncio.create_task(app.link.close())
    await asyncio.wait({closing}, timeout=PATIENCE)
    host = app.link.host
    if not closing.done() and host is not None:
        count = sum(server.state in _RUNNING for server in host.servers())
        what = f"{count} server{'s' * (count != 1)}" if count else "what still runs"
        with contextlib.suppress(OSError):  # a closed terminal is no error
            os.write(stderr, f"kage: closing {what} …; ctrl+c leaves at once\n".encode())
    await closing


def _say_goodbye(app: KageApp, log_file: Path) -> None:
    """Print the conversation, then why servers failed; a closed terminal is no error."""
    try:
        text = app.transcript.plain_text().strip("\n")
        if text:
            print(text, end="\n\n")
        if app.status.session_id and text:
            print(f"session {visible(app.status.session_id, single_line=True)}")
        sys.stdout.flush()
        for server, lines in _failed_servers(app):
            what = server.fault.what if server.fault is not None else "failed"
            _err(f"[{server.name}] {what}")
            for line in lines[-REPLAYED:]:
                _err(f"[{server.name}] {line}")
        if app.crashed is not None:
            _err(f"kage stopped: the screen could not be drawn any more. Details: {log_file}")
    except OSError:
        # stdout is flushed again when the interpreter ends; the terminal is gone
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _failed_servers(app: KageApp) -> Iterator[tuple[ServerStatus, tuple[str, ...]]]:
    """Give each failed server with its last stderr lines."""
    host = app.link.host
    for server in app.status.servers.values():
        if server.state is ServerState.FAILED:
            yield server, host.server_log(server.name) if host is not None else ()


def _err(line: str) -> None:
    print(visible(line, single_line=True), file=sys.stderr, flush=True)


@contextlib.contextmanager
def _logging_to(log_file: Path) -> Iterator[None]:
    """Write kage's own log to the app log while the UI is up."""
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler: logging.Handler = logging.FileHandler(log_file, encoding="utf-8", delay=True)
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    before = log.propagate
    log.addHandler(handler)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = before
        handler.close()
