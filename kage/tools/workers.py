"""Run a function of kage in a Python process of its own, which can be ended at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

from kage.core.errors import ToolError
from kage.core.processes import Spawner
from kage.tools import programs
from kage.tools.answering import DONE, FAILED

_HOME = Path(__file__).parents[2]  # the folder kage is imported from
_START = "import sys; sys.path.insert(0, sys.argv[1]); import {module} as work; work.main()"
_CHUNK = 1 << 18


async def run(
    spawner: Spawner,
    module: str,
    request: bytes,
    *,
    timeout: float,
    most: int,
    libraries: bool = False,
) -> tuple[bytes, bool]:
    """Call ``module.main()`` elsewhere with ``request`` as its input.

    Gives what it answered, at most ``most`` bytes, and whether that was not all. Without
    ``libraries`` only the standard library can be imported, which starts faster.

    Raises:
        TimeoutError: it took more than ``timeout`` seconds; it is ended then.
        ToolError: it refused the request, or died.
    """
    argv = [sys.executable, "-I", *(() if libraries else ("-S",))]
    argv += ["-c", _START.format(module=module), str(_HOME)]
    try:
        process = await spawner.spawn(
            argv,
            cwd=Path("/"),
            env={"LANG": "C.UTF-8"},
            stderr=asyncio.subprocess.DEVNULL,
            limit=_CHUNK,
        )
    except OSError as error:
        raise ToolError("A helper could not be started", why=str(error)) from error
    try:
        async with asyncio.timeout(timeout):
            answer, cut = await _exchange(process, request, most)
    finally:
        await programs.settle(asyncio.ensure_future(spawner.end(process, grace=0.0)))
    if answer[:1] == FAILED:
        raise ToolError(answer[1:].decode("utf-8", "replace"))
    if answer[:1] != DONE:
        raise ToolError("A helper died", why="it may have run out of memory")
    return answer[1:], cut


async def _exchange(
    process: asyncio.subprocess.Process, request: bytes, most: int
) -> tuple[bytes, bool]:
    writing = asyncio.ensure_future(_write(process, request))
    try:
        data = bytearray()
        while process.stdout is not None and (chunk := await process.stdout.read(_CHUNK)):
            data += chunk
            if len(data) > most:
                return bytes(data[:most]), True
        return bytes(data), False
    finally:
        writing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await writing


async def _write(process: asyncio.subprocess.Process, request: bytes) -> None:
    if process.stdin is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(request)
        await process.stdin.drain()
        process.stdin.close()
