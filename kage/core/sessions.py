"""What a list of conversations shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """One conversation on disk."""

    id: str
    title: str  # the first prompt, one line; "" when nothing was said yet
    workspace: Path
    model: str
    started: float  # seconds since the epoch
    changed: float
    messages: int
    size: int  # bytes of the session file
    locked_by: int | None = None  # pid of the kage that holds it
