"""Where this process keeps its servers' log files, and how those of earlier ones go."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

KEEP = 10  # folders of kages that ended, the newest ones
_NAME = re.compile(r"\d{8}-\d{6}-(\d{1,10})(?:-\d{1,6})?")


def own_folder(journals: Path) -> Path:
    """Give a folder in ``journals`` no other kage writes to; it is made with its first file.

    Folders of kages that ended are removed but for the last ``KEEP``; a disk that refuses costs
    only that.
    """
    _tidy(journals)
    stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    folder, number = journals / stem, 1
    while folder.exists():  # another one of this process within the same second
        number += 1
        folder = journals / f"{stem}-{number}"
    return folder


def _tidy(journals: Path) -> None:
    try:
        with os.scandir(journals) as entries:
            found = {entry.name for entry in entries if entry.is_dir(follow_symlinks=False)}
    except OSError:
        return
    ended = sorted(name for name in found if (match := _NAME.fullmatch(name)) and _gone(match[1]))
    for name in ended[:-KEEP]:
        shutil.rmtree(journals / name, ignore_errors=True)


def _gone(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False  # it belongs to somebody else, or is no process id
    return False
