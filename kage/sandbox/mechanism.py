"""Which sandbox this system has, tried once and not believed from version numbers."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Literal

from kage.sandbox import bubblewrap, landlock

_WAIT = 10.0  # seconds the trial may take
_FIX = "Install bubblewrap (apt install bubblewrap, dnf install bubblewrap), or take the key out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """What there is; ``kind`` "" is none, and ``why`` and ``fix`` are about that."""

    kind: Literal["", "bubblewrap", "landlock"]
    program: str = ""  # of bubblewrap
    version: int = 0  # of Landlock
    why: str = ""
    fix: str = ""

    @property
    def covers(self) -> str:
        """Say what it is, and what it leaves open."""
        match self.kind:
            case "bubblewrap":
                return "files, network, processes; not services behind a socket that is not hidden"
            case "landlock" if self.version >= 6:
                return "files, network, sockets and signals; not modes and times of files"
            case "landlock":
                return "files, network and sockets; not signals, nor modes and times of files"
            case _:
                return ""


@functools.cache
def look(path: str) -> Mechanism:
    """Try bubblewrap, looked up on ``path``, then ask for Landlock; once per program."""
    if sys.platform != "linux":
        return Mechanism(
            kind="",
            why="there is a sandbox for Linux only",
            fix='Take the sandbox key out, or set it to "none"',
        )
    program, trouble = _bubblewrap(path)
    if program:
        return Mechanism(kind="bubblewrap", program=program)
    version = landlock.version()
    if version >= landlock.LEAST:
        return Mechanism(kind="landlock", version=version)
    kernel = f"the kernel has version {version} of Landlock, and {landlock.LEAST} is needed"
    return Mechanism(
        kind="",
        why=f"{trouble}, and {kernel if version else 'the kernel has no Landlock'}",
        fix=_FIX,
    )


def _bubblewrap(path: str) -> tuple[str, str]:
    """Give the program if it works here, else what is in the way."""
    program = shutil.which("bwrap", path=path)
    if program is None:
        return "", "bubblewrap is not installed"
    trial = bubblewrap.command(
        program,
        network=False,
        write=(),
        hide=(),
        show=(),
        temporary="/tmp",
        argv=("/bin/sh", "-c", "exit 0"),
    )
    try:
        done = subprocess.run(
            trial,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_WAIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"bubblewrap does not work here ({error})"
    if done.returncode == 0:
        return program, ""
    said = done.stderr.decode("utf-8", "replace").strip().removeprefix("bwrap: ")
    return "", f"bubblewrap does not work here ({said[:200] or f'exit code {done.returncode}'})"
