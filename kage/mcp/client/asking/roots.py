"""Which folders a server is told about: the workspace, and those its entry adds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def roots_result(workspace: Path, extra: Sequence[str]) -> dict[str, Any]:
    """Give the result of ``roots/list``; a relative folder is one of the workspace's."""
    folders = [workspace, *(workspace / Path(folder).expanduser() for folder in extra)]
    plain = dict.fromkeys(Path(folder).absolute() for folder in folders)  # each once, in order
    return {
        "roots": [{"uri": folder.as_uri(), "name": folder.name or str(folder)} for folder in plain]
    }
