"""What the two ways to look at a workspace have in common: the words, and the limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from kage.core.undo import State

MAX_COPY = 8 << 20  # bytes of a file whose former bytes are kept
MAX_BYTES = 64 << 20  # of the former files of one call
MAX_FILES = 200_000  # of a workspace; beyond it nothing is looked at


class NotSeen(Exception):
    """The workspace could not be looked at; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What stood at a path when the workspace was last looked at; ``oid`` names its bytes."""

    state: State
    oid: str = ""


class Eye(Protocol):
    """Looks at a workspace again and again; used by one thread at a time."""

    def refresh(self, *, seconds: float) -> Mapping[bytes, Before]:
        """Look, and give what stood before at each path that may have changed since last time.

        Raises:
            NotSeen: it could not be looked at within ``seconds``, or at all.
        """
        ...

    def former(self, oids: tuple[str, ...]) -> Mapping[str, bytes]:
        """Give the bytes of states before, as far as there are any."""
        ...

    def stop(self) -> None:
        """End a look that is under way, from another thread, and allow no other."""
        ...

    def close(self) -> None:
        """Remove what was kept for looking."""
        ...
