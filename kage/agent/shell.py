"""Run the person's own shell line (``!``): their process, not the agent's."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from kage.core.sanitise import visible

MAX_OUTPUT = 50_000  # characters that join the conversation; the middle is left out


async def run_shell(line: str, *, workspace: Path, environ: Mapping[str, str]) -> str:
    """Run ``line`` with the person's shell and environment; give what the conversation shows.

    The process is neither tagged nor registered: what the person starts may outlive kage.
    Cancelling ends its group.
    """
    shell = environ.get("SHELL") or "/bin/sh"
    try:
        process = await asyncio.create_subprocess_exec(
            shell,
            "-c",
            line,
            cwd=workspace,
            env=dict(environ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return _told(line, f"could not start {shell}: {error.strerror}", 127)
    try:
        output = await _drain(process)
        code = await process.wait()
    except asyncio.CancelledError:
        _kill(process)
        await process.wait()
        raise
    return _told(line, output, code)


async def _drain(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    head, tail, skipped = bytearray(), bytearray(), 0
    half = MAX_OUTPUT // 2
    while chunk := await process.stdout.read(1 << 16):
        room = half - len(head)
        head += chunk[:room] if room > 0 else b""
        tail += chunk[max(room, 0) :]
        if len(tail) > half:
            skipped += len(tail) - half
            del tail[: len(tail) - half]
    gap = f"\n… {skipped} bytes left out …\n".encode() if skipped else b""
    return bytes(head + gap + tail).decode("utf-8", "replace")


def _kill(process: asyncio.subprocess.Process) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _told(line: str, output: str, code: int) -> str:
    ending = "" if code == 0 else f"\n(exit code {code})"
    return f"I ran a command myself:\n\n$ {line}\n{visible(output).rstrip()}{ending}"
