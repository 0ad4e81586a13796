"""How a process is kept from writing, reading and connecting where it has no business.

``kage.sandbox`` implements this; ``cli`` wires it into the shell of the agent and into servers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from kage.core.errors import KageError

SandboxLevel = Literal["none", "workspace", "no-network"]
LEVELS: tuple[SandboxLevel, ...] = ("none", "workspace", "no-network")  # from loose to strict
STRICTEST: SandboxLevel = "no-network"

MEANING: Mapping[str, str] = {
    "workspace": "may write only below the workspace and its temporary folder",
    "no-network": "no network; may write only below the workspace and its temporary folder",
}


class SandboxRefused(KageError):
    """A sandbox was asked for and cannot be had; nothing was started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """What one process may touch."""

    write: tuple[Path, ...]  # it may write below these
    show: tuple[Path, ...] = ()  # it may read these, also where what is around them is hidden
    name: str  # of its temporary folder: what has the same name shares it


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapped:
    """What is to be started instead."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


class Sandbox(Protocol):
    """Puts a command line into a sandbox by putting other words in front of it."""

    async def wrap(
        self, argv: Sequence[str], env: Mapping[str, str], *, level: SandboxLevel, places: Places
    ) -> Wrapped:
        """Give what starts ``argv`` (its first word an absolute path) in a sandbox.

        Raises:
            SandboxRefused: this system has none, or not this level of it.
        """
        ...

    def close(self) -> None:
        """Remove the temporary folders; whatever ran in a sandbox has ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cage:
    """A sandbox and how strict it is to be, for everything one part starts."""

    sandbox: Sandbox
    level: SandboxLevel
    write: tuple[Path, ...] = ()  # besides the workspace

    async def around(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        workspace: Path,
        name: str,
        show: tuple[Path, ...] = (),
    ) -> Wrapped:
        """Give what is to be started; ``argv`` itself where no sandbox is wanted.

        Raises:
            SandboxRefused: this system has none, or not this level of it.
        """
        if self.level == "none":
            return Wrapped(argv=tuple(argv), env=env)
        places = Places(write=(workspace, *self.write), show=show, name=name)
        return await self.sandbox.wrap(argv, env, level=self.level, places=places)


def is_looser(level: SandboxLevel, than: SandboxLevel) -> bool:
    """Say whether ``level`` lets a process do more."""
    return LEVELS.index(level) < LEVELS.index(than)
