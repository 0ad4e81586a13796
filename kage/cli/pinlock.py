"""``kage mcp pins lock``: write ``mcp.lock``, or check that everything is what it says."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable

import click

from kage.cli.complete import complete_server
from kage.cli.ground import Ground, Options, ground, refuse_agent
from kage.cli.output import examples
from kage.cli.pinning import lock_file
from kage.cli.servers import Up, connected, one, startable
from kage.cli.trial import print_fault
from kage.core.errors import UsageError
from kage.core.pins import Cause, Offered, PinnedDefinition
from kage.core.sanitise import exact
from kage.core.servers import ServerState
from kage.permissions.pins import file as pinfile
from kage.permissions.pins import lock as pinlock
from kage.permissions.pins.diff import differences
from kage.plain.pins import difference_lines, headline
from kage.plain.text import complain


@click.command(
    epilog=examples(
        "kage mcp pins lock                every enabled server",
        "kage mcp pins lock github         only this one; the others stay as they are",
        "kage mcp pins lock --check        exit code 1, with the difference, when one is another",
    )
)
@click.argument("names", nargs=-1, metavar="[SERVER]...", shell_complete=complete_server)
@click.option("--check", is_flag=True, help="Write nothing; compare.")
@click.pass_obj
def lock(options: Options, names: tuple[str, ...], check: bool) -> None:
    """Write mcp.lock: the definitions this project expects of its servers.

    Committed, it holds for everybody what is not as it says, also at first use. It lets nothing
    pass that was not accepted.
    """
    here = ground(options).sound()
    refuse_agent(here.environ, "mcp pins lock")
    wanted = [one(here, name).name for name in names]
    work = _check(here, wanted) if check else _write(here, wanted)
    sys.exit(asyncio.run(work))


async def _write(here: Ground, names: list[str]) -> int:
    path = lock_file(here)
    before = pinlock.read(path)
    if names and before.broken:
        raise UsageError(f"{path} cannot be read: {before.broken}", fix="Lock all: give no name.")
    servers = names or startable(here)
    async with connected(here, servers) as up:
        if any_down(up, servers):
            return 1
        odd = [c for c in up.manager.held() if c.cause in (Cause.CHANGED, Cause.RENAMED)]
        for change in odd:
            complain(f"{change.server} holds {headline(change)}")
        if odd:
            complain("nothing was written. Decide first: kage mcp pins diff")
            return 1
        found = {one.server: one.definitions for one in up.guard.pins.offered()}
    kept = before.servers if names else {}
    whole = {name: tuple(known.values()) for name, known in kept.items()} | found
    try:
        pinlock.write(path, whole)
    except OSError as error:
        raise UsageError(f"{path} cannot be written", why=error.strerror or "") from None
    count = sum(map(len, found.values()))
    print(f"{path}: {count} definitions of {len(found)} server{'s' * (len(found) != 1)}")
    return 0


async def _check(here: Ground, names: list[str]) -> int:
    path = lock_file(here)
    known = pinlock.read(path)
    if known.broken:
        raise UsageError(f"{path} cannot be read: {known.broken}", fix="kage mcp pins lock")
    if not known.servers:
        raise UsageError(f"There is no {path}", fix="kage mcp pins lock")
    servers = names or list(known.servers)
    there = [name for name in servers if name in here.settings.servers]
    for name in servers:
        if name not in there:
            complain(f"{name} is in {pinlock.NAME} and not configured here")
    async with connected(here, there) as up:
        if any_down(up, there):
            return 1
        found = [line for offered in up.guard.pins.offered() for line in _odd(known, offered)]
    for line in found:
        print(line)
    if not found and len(there) == len(servers):
        print(f"Everything is what {pinlock.NAME} says")
        return 0
    return 1


def _odd(known: pinlock.Lock, offered: Offered) -> Iterable[str]:
    """Say what of a server is not what the lock says."""
    server = offered.server
    wanted = dict(known.servers.get(server, {}))
    for found in offered.definitions:
        before = wanted.pop(found.name, None)
        if before is None:
            yield f"{exact(server)}  {_name(found)} is not in {pinlock.NAME}"
        elif before.digest != found.digest:
            yield f"{exact(server)}  {_name(found)} is not what {pinlock.NAME} says"
            known_as = pinfile.shows(before, before.digest)
            for part in differences(known_as.written if known_as else {}, found.written):
                yield from (f"    {line}" for line in difference_lines(part))
    for gone in wanted.values():
        yield f"{exact(server)}  {_name(gone)} is gone"


def _name(definition: PinnedDefinition) -> str:
    return exact(definition.name) or "what it tells the model"


def any_down(up: Up, names: Iterable[str]) -> bool:
    """Say whether a server is not up, and tell why."""
    statuses = [up.status(name) for name in names]
    down = [status for status in statuses if status["state"] != ServerState.CONNECTED.value]
    for status in down:
        print_fault(status)
    return bool(down)
