"""How any part of kage starts a process that may not outlive kage.

``mcp.client.watchdog`` implements this; ``cli`` wires it into tools and servers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol


class Spawner(Protocol):
    """Starts processes in groups of their own that end with kage, however kage ends."""

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stderr: int | IO[bytes] | None = None,
        limit: int = 1 << 16,
    ) -> asyncio.subprocess.Process:
        """Start ``argv`` as leader of its own session, stdin and stdout piped.

        The group is registered before the program may run. ``stderr`` is None to inherit, or
        what subprocess takes. ``env`` is the whole environment; kage's tag is added to it.

        Raises:
            OSError: the program or ``cwd`` cannot be used; ``filename`` says which.
        """
        ...

    async def end(self, process: asyncio.subprocess.Process, *, grace: float = 2.0) -> None:
        """End the whole group: TERM, ``grace`` seconds, KILL; also after its leader left."""
        ...

    async def strays(self, process: asyncio.subprocess.Process) -> Mapping[int, str]:
        """Find what ``process`` started that left its group and still runs.

        Gives process ids and command lines; nothing where the system does not show it. They end
        with kage.
        """
        ...
