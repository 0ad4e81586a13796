"""A kage that is killed: starts a child, gets to the given moment, and dies of SIGKILL.

``python -m tests.mcp.client.doomed_host MOMENT FOLDER PROGRAM [ARGS]``; prints the tag first.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from kage.mcp.client.watchdog import Watchdog


async def main(moment: str, folder: Path, argv: list[str]) -> None:
    """Live until ``moment``."""
    watchdog = Watchdog()
    print(watchdog.tag, flush=True)
    if moment == "registered":
        # the child's group is known, the line that lets it go on is never written
        asyncio.StreamWriter.write = lambda self, data: die()  # type: ignore[method-assign]
    child = await watchdog.spawn(argv, cwd=folder, env=dict(os.environ))
    if moment == "starting":
        die()
    assert child.stdin is not None
    assert child.stdout is not None
    if moment == "respawned":  # the watchdog process dies, the next child brings a new one
        assert watchdog.pid is not None
        os.kill(watchdog.pid, signal.SIGKILL)
        os.waitid(os.P_PID, watchdog.pid, os.WEXITED | os.WNOWAIT)
        second = await watchdog.spawn(argv, cwd=folder, env=dict(os.environ))
        assert second.stdout is not None
        await second.stdout.readline()
    # the program says a line when it is up
    await child.stdout.readline()
    if moment == "closing":
        ending = asyncio.create_task(watchdog.end(child))
        await asyncio.sleep(0.3)
        assert not ending.done()
    print("ready", flush=True)
    die()


def die() -> None:
    """End as an out-of-memory kill would."""
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
