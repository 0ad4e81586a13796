"""What it takes to start a stdio server, and what to tell when that fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kage.core.errors import ServerError
from kage.core.sandbox import Cage
from kage.core.servers import Stage

StderrMode = Literal["inherit", "pipe", "null"]

_SHOWN_FOLDERS = 4  # of a PATH; the rest is counted

_LAUNCHERS = {
    "npx": "It comes with Node.js: install Node.js",
    "node": "Install Node.js",
    "uvx": "It comes with uv: install uv",
    "uv": "Install uv",
    "pipx": "Install pipx",
    "docker": "Install Docker",
    "podman": "Install Podman",
    "bunx": "It comes with Bun: install Bun",
    "deno": "Install Deno",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One server process to be; nothing in it is expanded any further."""

    argv: tuple[str, ...]  # argv[0] is the command as it was configured
    cwd: Path
    env: Mapping[str, str]  # the whole environment
    executable: str = ""  # what argv[0] resolved to; "": look it up on PATH when starting
    server: str = ""  # for errors
    cage: Cage | None = None  # the sandbox it runs in
    workspace: Path = Path()  # what it may write below there


def spawn_failure(error: OSError, launch: Launch) -> ServerError:
    """Say why ``launch`` could not be started and what to do (SPEC N22)."""
    what, why, fix = _explain(error, launch)
    return ServerError(what, server=launch.server, stage=Stage.SPAWN, why=why, fix=fix)


def _explain(error: OSError, launch: Launch) -> tuple[str, str, str]:
    command = launch.argv[0]
    named = os.fspath(error.filename) if isinstance(error.filename, str | os.PathLike) else ""
    reason = error.strerror or str(error)
    if named == str(launch.cwd):
        what = f"Cannot start {command} in {launch.cwd}"
        match error.errno:
            case errno.ENOENT:
                return what, "that folder does not exist", "Create it, or change `cwd`"
            case errno.ENOTDIR:
                return what, "that is not a folder", "Change `cwd`"
            case errno.EACCES:
                return what, "that folder may not be entered", "Change its rights, or `cwd`"
            case _:
                return what, reason, "Change `cwd`"
    match error.errno:
        case errno.ENOENT if isinstance(error.filename2, str):
            why = f"its first line asks for {error.filename2}, which does not exist"
            return f"Cannot start {named}", why, f"Install {error.filename2}, or mend that line"
        case errno.ENOENT if "/" in command or launch.executable:
            why = f"{launch.executable or command} does not exist"
            return f"Cannot start {command}", why, "Correct `command`, or install the program"
        case errno.ENOENT:
            return _not_on_path(command, launch)
        case errno.EACCES:
            fix = f"Make it executable: chmod +x {named or command}"
            return f"Cannot start {command}", f"{named or command} is not executable", fix
        case errno.EISDIR:
            return f"Cannot start {command}", f"{named} is a folder", "Correct `command`"
        case errno.EINVAL:
            fix = "Correct `command`, `args` or `env`"
            return f"Cannot start {command}", f"{named!r} {reason}", fix
        case errno.E2BIG:
            fix = "Shorten `args` or `env`"
            return f"Cannot start {command}", "its arguments and environment are too long", fix
        case errno.EMFILE | errno.ENFILE | errno.EAGAIN | errno.ENOMEM:
            fix = "Close something, or raise the limit (ulimit -n, ulimit -u)"
            return f"Cannot start {command}", f"the system refused: {reason}", fix
        case _:
            return f"Cannot start {command}", reason, ""


def _not_on_path(command: str, launch: Launch) -> tuple[str, str, str]:
    folders = [folder for folder in launch.env.get("PATH", "").split(os.pathsep) if folder]
    shown = os.pathsep.join(folders[:_SHOWN_FOLDERS]) or "which is empty"
    if len(folders) > _SHOWN_FOLDERS:
        shown += f" and {len(folders) - _SHOWN_FOLDERS} more folders"
    why = f"there is no program of that name on its PATH ({shown})"
    install = _LAUNCHERS.get(command, "Install it")
    return f"Cannot find {command}", why, f"{install}, or give its full path as `command`"
