"""Bring one connection up: expand the entry, start the process, find the era it speaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kage.config.schema import ServerSpec
from kage.core.errors import ServerError
from kage.core.pins import HeldChange, Pins
from kage.core.redact import Redactor
from kage.core.servers import Fault, ServerState, ServerStatus
from kage.mcp.client import faults
from kage.mcp.client.connections.connection import Connection
from kage.mcp.client.faults import StartFailed
from kage.mcp.client.servers.clock import Clock
from kage.mcp.client.servers.journal import Journal
from kage.mcp.client.servers.manifest import Manifests
from kage.mcp.client.servers.recipe import Recipe, prepare
from kage.mcp.client.servers.tries import Tries
from kage.mcp.client.services import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """What every server of one manager is given."""

    services: Services
    environ: Mapping[str, str]
    workspace: Path
    inherit_stderr: bool
    gate: asyncio.Semaphore  # how many may start at once
    servers: Callable[[], tuple[str, ...]]  # every configured name
    publish: Callable[[ServerStatus, ServerState | None], None]
    wake: Callable[[], None]  # there is something to apply
    clock: Clock
    manifests: Manifests
    trusted: Callable[[ServerSpec, str], Fault | None]  # of an entry and its hash: why it may not
    pins: Pins | None = None  # who knows the definitions; None: nobody compares them
    tell: Callable[[tuple[HeldChange, ...]], None] = lambda changes: None  # what a person must see


class Untrusted(StartFailed):
    """A person has not agreed yet that this entry starts or connects to anything."""


async def bring_up(
    spec: ServerSpec,
    home: Home,
    journal: Journal,
    *,
    line: str,
    changed: Callable[[], None],
    retire: Callable[[Connection], None],
) -> Connection:
    """Open a connection, in the era and by the transport the server turns out to speak.

    Args:
        line: The connection's id, which decisions are bound to.
        changed: Called whenever the server says that its tools changed.
        retire: Ends a connection that did not come up, in its own time.

    Raises:
        Untrusted: nothing was started.
        StartFailed: it did not come up.
    """
    recipe = recipe_for(spec, home)

    async def attempt(*, legacy: bool, sse: bool) -> Connection:
        connection = Connection(
            recipe, home.services, journal, line=line, sse=sse, legacy=legacy, changed=changed
        )
        try:
            await connection.open()
        except BaseException:  # goes on; what was opened must be closed
            retire(connection)
            raise
        return connection

    async with home.gate:
        return await Tries(recipe, home.services.eras, journal, attempt).run()


def recipe_for(spec: ServerSpec, home: Home) -> Recipe:
    """Expand an entry that may be started.

    Its secrets are secrets from when it is trusted on: what a stranger's file calls one would
    otherwise be hidden from the person, also in questions.

    Raises:
        Untrusted: it may not.
        StartFailed: a variable is missing, or a value is not usable.
    """
    secrets = Redactor()
    try:
        recipe = prepare(
            spec,
            home.environ,
            workspace=home.workspace,
            redactor=secrets,
            inherit_stderr=home.inherit_stderr,
            sandbox=home.services.sandbox,
        )
    except ServerError as error:
        if (fault := home.trusted(spec, "")) is not None:  # nobody cares what it lacks
            raise Untrusted(fault, hopeless=True) from None
        raise StartFailed(faults.to_fault(error), hopeless=True) from None
    if (fault := home.trusted(spec, recipe.entry)) is not None:
        raise Untrusted(fault, hopeless=True)
    home.services.redactor.take(secrets)
    return recipe
