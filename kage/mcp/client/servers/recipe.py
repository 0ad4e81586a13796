"""Everything needed to reach one server once: its entry expanded, its program found, its hash."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kage.config.expand import ExpandedServer, child_environment, expand_server
from kage.config.schema import ServerSpec
from kage.core.errors import ServerError
from kage.core.redact import Redactor
from kage.core.sandbox import Cage, Sandbox
from kage.core.servers import Stage
from kage.mcp.client.calling.definitions import entry_hash
from kage.mcp.client.servers.program import find_program
from kage.mcp.client.transport.address import Address
from kage.mcp.client.transport.launch import Launch, StderrMode
from kage.mcp.client.transport.proxies import proxies_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One server, ready to be started or connected to."""

    spec: ServerSpec
    target: Launch | Address
    entry: str  # entry hash
    stderr: StderrMode  # of a process that is started


def prepare(
    spec: ServerSpec,
    environ: Mapping[str, str],
    *,
    workspace: Path,
    redactor: Redactor,
    inherit_stderr: bool,
    sandbox: Sandbox | None = None,
) -> Recipe:
    """Expand ``spec`` and tell ``redactor`` its secrets.

    Args:
        inherit_stderr: Whether kage's own stderr may be written to; else it is a pipe.
        sandbox: What makes the sandbox an entry asks for; None: such an entry is refused.

    Raises:
        ServerError: stage "config": a variable is missing, or a value is not usable.
    """
    expanded = expand_server(spec, environ, workspace=workspace)
    for name, value in expanded.secrets:
        redactor.add(name, value)
    stderr = _stderr(spec, inherit_stderr=inherit_stderr)
    if spec.transport != "stdio":
        for name, value in passwords_in(expanded.url):
            redactor.add(name, value)
        address = _address(spec, expanded, environ, workspace)
        entry = entry_hash(spec, (), "", Path())
        return Recipe(spec=spec, target=address, entry=entry, stderr=stderr)
    env = child_environment(environ, expanded.env, spec.env_pass, hidden=spec.env_hidden)
    argv = (expanded.command, *expanded.args)
    try:
        executable = find_program(expanded.command, cwd=expanded.cwd, env=env)
    except OSError:
        executable = ""  # starting it tells why
    launch = Launch(
        argv=argv,
        cwd=expanded.cwd,
        env=env,
        executable=executable,
        server=spec.name,
        cage=_cage(spec, sandbox, workspace),
        workspace=workspace,
    )
    entry = entry_hash(spec, argv, executable, expanded.cwd)
    return Recipe(spec=spec, target=launch, entry=entry, stderr=stderr)


def _cage(spec: ServerSpec, sandbox: Sandbox | None, workspace: Path) -> Cage | None:
    if spec.sandbox == "none":
        return None
    if sandbox is None:
        raise ServerError(
            f"{spec.name} asks for a sandbox, and there is none here",
            server=spec.name,
            stage=Stage.CONFIG,
        )
    write = tuple(workspace / os.path.expanduser(place) for place in spec.sandbox_write)
    return Cage(sandbox=sandbox, level=spec.sandbox, write=write)


def _address(
    spec: ServerSpec, expanded: ExpandedServer, environ: Mapping[str, str], workspace: Path
) -> Address:
    return Address(
        url=expanded.url,
        headers=expanded.headers,
        command=spec.headers_command,
        cwd=workspace,
        env=child_environment(environ, {}, (), hidden=spec.env_hidden),
        proxies=proxies_in(environ),
    )


def passwords_in(url: str) -> Iterator[tuple[str, str]]:
    """Give the password an address carries, as it stands there and as it is meant."""
    password = urlsplit(url).password
    if password:
        yield "url password", password
        yield "url password", unquote(password)


def _stderr(spec: ServerSpec, *, inherit_stderr: bool) -> StderrMode:
    match spec.stderr:
        case "null":
            return "null"
        case "log":
            return "pipe"
    return "inherit" if inherit_stderr else "pipe"
