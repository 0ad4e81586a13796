"""Earlier prompts, shared by all sessions of a workspace."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path

from kage.core.files import opened, reading

KEEP = 1000  # prompts given back
TAIL = 2 << 20  # bytes looked at from the end
ROTATE = 8 << 20  # bytes; past this the older part is let go


class History:
    """The file ``<data>/history.jsonl``, one prompt a line, appended by every kage."""

    def __init__(self, path: Path, *, redact: Callable[[str], str] = lambda text: text) -> None:
        self._path = path
        self._redact = redact

    def add(self, workspace: Path, text: str) -> None:
        """Remember ``text``; a disk that refuses costs the memory, nothing else."""
        line = json.dumps({"workspace": str(workspace), "text": self._redact(text)}) + "\n"
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = opened(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                os.write(handle, line.encode("utf-8", "replace"))
                if os.fstat(handle).st_size > ROTATE:
                    tail = os.pread(handle, TAIL, os.fstat(handle).st_size - TAIL)
                    os.ftruncate(handle, 0)
                    os.write(handle, tail[tail.find(b"\n") + 1 :])
            finally:
                os.close(handle)
        except OSError:
            return

    def recent(self, workspace: Path) -> tuple[str, ...]:
        """Give the prompts of ``workspace``, oldest first, without neighbours that repeat."""
        try:
            with reading(self._path) as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
                lines = file.read().split(b"\n")
        except OSError:
            return ()
        prompts: list[str] = []
        for line in lines:
            try:
                data = json.loads(line)
                text = data["text"] if data["workspace"] == str(workspace) else None
            except (ValueError, KeyError, TypeError):
                continue
            if isinstance(text, str) and text and (not prompts or prompts[-1] != text):
                prompts.append(text)
        return tuple(prompts[-KEEP:])
