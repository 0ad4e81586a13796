"""Wait for a file lock that another kage may hold, but not for ever."""

from __future__ import annotations

import fcntl
import time

WAIT = 5.0  # seconds; whoever holds a lock writes a few hundred bytes


def take(lock: int, *, shared: bool = False, seconds: float = WAIT) -> None:
    """Take the lock on the open file ``lock``; closing the file lets go of it.

    Raises:
        BlockingIOError: another process kept it for ``seconds``.
    """
    end = time.monotonic() + seconds
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    while True:
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > end:
                raise
            time.sleep(0.001)
