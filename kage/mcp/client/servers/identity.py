"""Which entry this is: the hash trust is bound to, and what a person sees of it; starts nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from kage.config.expand import child_environment, expand_server
from kage.config.schema import ServerSpec
from kage.config.seen import seen
from kage.core.trust import Identity
from kage.mcp.client.calling.definitions import entry_hash
from kage.mcp.client.servers.program import find_program


def identify(spec: ServerSpec, environ: Mapping[str, str], *, workspace: Path) -> Identity:
    """Give the identity of ``spec`` as it would start now, the same as when it is started.

    Variables in ``env`` and ``headers`` need not be set, since their values are no part of it.

    Raises:
        ServerError: stage "config": a variable in command, args or cwd is not set.
    """
    if spec.transport != "stdio":
        found = entry_hash(spec, (), "", Path())
        return Identity(name=spec.name, origin=spec.origin, entry_hash=found, seen=seen(spec))
    path = {name: value for name, value in spec.env.items() if name == "PATH"}
    expanded = expand_server(
        dataclasses.replace(spec, env=path, headers={}), environ, workspace=workspace
    )
    env = child_environment(environ, expanded.env, spec.env_pass, hidden=spec.env_hidden)
    try:
        program = find_program(expanded.command, cwd=expanded.cwd, env=env)
    except OSError:
        program = ""  # starting it tells why
    argv = (expanded.command, *expanded.args)
    return Identity(
        name=spec.name,
        origin=spec.origin,
        entry_hash=entry_hash(spec, argv, program, expanded.cwd),
        seen=seen(spec, program=program, folder=str(expanded.cwd)),
    )
