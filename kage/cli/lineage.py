"""Whether kage's agent is among those who started this process; best effort, where /proc is."""

from __future__ import annotations

import os
from collections.abc import Mapping

_STARTED_BY_KAGE = "KAGE_TAG"  # on every child of a kage but what the person opens
_FAR_ENOUGH = 64  # generations


def marked(environ: Mapping[str, str], mark: str) -> bool:
    """Say whether a kage that is no person's started this one, also when ``mark`` was removed.

    A line of the agent's shell may take the mark away (``env -u``); what the kage that runs the
    shell gives all its children stays, and so does the mark of the shell above. Who empties the
    whole environment and leaves no shell behind is not seen.
    """
    if environ.get(_STARTED_BY_KAGE):
        return True
    wanted = (f"{mark}=".encode(), f"{_STARTED_BY_KAGE}=".encode())
    process = os.getppid()
    for _ in range(_FAR_ENOUGH):
        if process <= 1:
            return False
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                variables = file.read().split(b"\0")
            with open(f"/proc/{process}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):  # somebody else's, gone, or no /proc at all
            return False
        if any(variable.startswith(wanted) for variable in variables):
            return True
        process = parent
    return False
