"""Keep everything a library or the interpreter prints away from the screen while the UI is up."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

LOG_MODE = 0o600


@contextlib.contextmanager
def redirected(log: Path) -> Iterator[int]:
    """Point file descriptor 2 at the app log; give a descriptor of the real stderr meanwhile.

    The real stderr is put back on the way out, also after an exception. When the log cannot be
    opened, what is printed is dropped rather than drawn over the screen.
    """
    sys.stderr.flush()
    real = os.dup(2)
    try:
        target = _open(log)
        try:
            os.dup2(target, 2)
        finally:
            os.close(target)
        yield real
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os.dup2(real, 2)
        os.close(real)


def _open(log: Path) -> int:
    try:
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(log, flags, LOG_MODE)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
