"""Make the eight built-in tools."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kage.core.errors import UsageError
from kage.core.processes import Spawner
from kage.core.sandbox import Cage
from kage.core.tools import Tool

NAMES = ("read", "write", "edit", "bash", "ls", "find", "grep", "web_fetch")


def create(
    *,
    spawner: Spawner | None,
    environ: Mapping[str, str],
    names: Collection[str] | None = None,
    max_output_chars: int = 100_000,
    allow_loopback: bool = False,
    cage: Cage | None = None,
) -> tuple[Tool, ...]:
    """Make the tools called ``names`` (all by default), in the fixed order.

    ``environ`` is where programs are looked up and what of it a shell is given. Without a
    ``spawner`` there is no ``bash``; searches then run in groups of their own. The tools keep
    their text within ``max_output_chars``. ``allow_loopback`` lets ``web_fetch`` reach this
    machine. ``cage`` is the sandbox ``bash`` runs in.

    Raises:
        UsageError: a name is unknown, or ``bash`` is wanted without a spawner.
    """
    wanted = set(NAMES if names is None else names)
    if unknown := sorted(wanted - set(NAMES)):
        raise UsageError(
            f"There is no built-in tool {unknown[0]!r}", fix=f"Choose from {', '.join(NAMES)}"
        )
    if "bash" in wanted and spawner is None:
        raise UsageError("The bash tool needs something that starts its processes")
    return tuple(
        _make(name, spawner, environ, max_output_chars, cage, allow_loopback=allow_loopback)
        for name in NAMES
        if name in wanted
    )


def _make(
    name: str,
    spawner: Spawner | None,
    environ: Mapping[str, str],
    limit: int,
    cage: Cage | None,
    *,
    allow_loopback: bool,
) -> Tool:
    """Import one tool and make it; a host that offers few tools pays for few."""
    match name:
        case "read":
            from kage.tools.read import Read

            return Read(max_output_chars=limit)
        case "write":
            from kage.tools.write import Write

            return Write()
        case "edit":
            from kage.tools.edit import Edit

            return Edit()
        case "ls":
            from kage.tools.ls import Ls

            return Ls(max_output_chars=limit)
        case "bash" if spawner is not None:
            from kage.tools.bash import Bash

            return Bash(spawner=spawner, environ=environ, max_output_chars=limit, cage=cage)
        case _:
            return _make_helped(name, spawner, environ, limit, allow_loopback=allow_loopback)


def _make_helped(
    name: str,
    spawner: Spawner | None,
    environ: Mapping[str, str],
    limit: int,
    *,
    allow_loopback: bool,
) -> Tool:
    """Make a tool that runs helper programs."""
    from kage.tools import programs

    helper = spawner or programs.Groups()
    match name:
        case "find":
            from kage.tools.find import Find

            return Find(spawner=helper, environ=environ, max_output_chars=limit)
        case "grep":
            from kage.tools.grep import Grep

            return Grep(spawner=helper, environ=environ, max_output_chars=limit)
        case _:
            from kage.tools.web_fetch import WebFetch

            return WebFetch(spawner=helper, max_output_chars=limit, allow_loopback=allow_loopback)
