"""What the header and the status line show, as one plain record the controllers keep current."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kage.core.gate import Mode
from kage.core.servers import ServerState, ServerStatus

if TYPE_CHECKING:
    from kage.core.sessions import SessionInfo

STARTING = (ServerState.CONNECTING,)
BROKEN = (ServerState.FAILED, ServerState.NEEDS_AUTH, ServerState.UNTRUSTED)


@dataclass(slots=True, kw_only=True)
class Status:
    """The state of the conversation and what is around it, as the screen shows it."""

    workspace: Path
    session_id: str = ""
    title: str = ""
    model: str = ""
    model_reason: str = ""
    mode: Mode = Mode.DEFAULT
    tokens: int = 0
    window: int | None = None
    cost: float | None = None
    ready: bool = False  # the engine is up
    running_since: float | None = None  # monotonic seconds
    activity: str = ""  # what the run is doing, a few words
    waiting: int = 0  # open questions
    servers: dict[str, ServerStatus] = field(default_factory=dict)
    recent: tuple[SessionInfo, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def running(self) -> bool:
        """Whether a run is on."""
        return self.running_since is not None

    @property
    def elapsed(self) -> float:
        """Seconds since the run began, 0 while idle."""
        return 0.0 if self.running_since is None else time.monotonic() - self.running_since

    @property
    def context(self) -> float | None:
        """How full the window is, 0 to 1; None where the window is not known."""
        return self.tokens / self.window if self.window else None

    def shown_servers(self) -> tuple[ServerStatus, ...]:
        """Give the servers worth a word in the header: all but disabled ones."""
        return tuple(s for s in self.servers.values() if s.state is not ServerState.DISABLED)


def settled(servers: Iterable[ServerStatus]) -> tuple[int, int]:
    """Count (servers that are up or gave up, all)."""
    known = tuple(servers)
    return sum(s.state not in STARTING for s in known), len(known)
