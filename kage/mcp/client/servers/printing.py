"""Run a small program of the person and take what it prints: bounded in time and size."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kage.core.processes import Spawner
from kage.core.sanitise import clip, visible
from kage.mcp.client.servers.program import find_program

LIMIT = 10.0  # seconds it may take
MOST = 64 << 10  # bytes of its output


class NothingPrinted(Exception):
    """It could not be run, failed, or printed too much; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is run; nothing in it is expanded any further."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]  # the whole environment


async def printed(program: Program, spawner: Spawner) -> bytes:
    """Run ``program`` to its end and give its stdout; its whole group is gone afterwards.

    Raises:
        NothingPrinted: it could not be started, took too long, failed, or printed too much.
    """
    argv, cwd, env = program.argv, program.cwd, program.env
    try:
        path = find_program(argv[0], cwd=cwd, env=env)
        process = await spawner.spawn(
            (path, *argv[1:]), cwd=cwd, env=env, stderr=asyncio.subprocess.PIPE
        )
    except OSError as error:
        raise NothingPrinted(error.strerror or str(error)) from error
    assert process.stdin is not None and process.stdout is not None
    assert process.stderr is not None
    process.stdin.close()
    complaint = asyncio.create_task(_read(process.stderr))
    try:
        async with asyncio.timeout(LIMIT):
            output = await _read(process.stdout)
            code = await process.wait()
            said = await complaint
    except TimeoutError:
        raise NothingPrinted(f"it took more than {LIMIT:g} s") from None
    finally:
        complaint.cancel()
        await asyncio.shield(asyncio.create_task(spawner.end(process, grace=0.5)))
    if code:
        last = said.decode("utf-8", "replace").strip().splitlines()[-1:]
        words = f": {clip(visible(last[0], single_line=True), 200)}" if last else ""
        raise NothingPrinted(f"it ended with exit code {code}{words}")
    if len(output) > MOST:
        raise NothingPrinted(f"it printed more than {MOST >> 10} KiB")
    return output


async def _read(pipe: asyncio.StreamReader) -> bytes:
    """Read to the end; what is too much is read and thrown away."""
    kept = bytearray()
    while chunk := await pipe.read(1 << 16):
        kept += chunk[: MOST + 1 - len(kept)]
    return bytes(kept)
