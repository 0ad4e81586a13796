"""Full outputs that servers kept for their clients: removed when nobody can read on in them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def clear(folder: Path) -> None:
    """Empty and remove the scratch folders of this process and of those that are gone.

    ``folder`` holds one per process, named by its number. Links are never followed; what cannot
    be removed stays.
    """
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.isdecimal() and (int(name) == os.getpid() or not _runs(int(name))):
                _remove(folder / name)
        folder.rmdir()  # fails while another server keeps something


def _runs(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's, or no number a process can have
        return True
    return True


def _remove(folder: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(folder, _FOLDER)
        try:
            for name in os.listdir(descriptor):
                os.unlink(name, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        folder.rmdir()
