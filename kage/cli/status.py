"""``kage mcp status`` and ``restart``: ask the kage that runs here, over its control socket."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import click

from kage.cli.ground import Ground, Options, ground, refuse_agent
from kage.cli.output import as_json, examples, table
from kage.cli.servers import connected, startable
from kage.control.caller import Running, running, watch
from kage.control.caller import restart as restart_there
from kage.core.errors import UsageError
from kage.core.sanitise import visible
from kage.plain.text import complain

_HEAD = ("NAME", "STATE", "FOR", "TOOLS", "PROTOCOL", "VERSION", "REASON")


@click.command(
    epilog=examples(
        "kage mcp status                 how the servers of the kage running here are",
        "kage mcp status --watch         and every change, until ctrl+c",
        "kage mcp status --json | jq -r '.[] | select(.state==\"failed\").name'",
        "kage mcp status --start         start each for a moment instead",
    )
)
@click.option("--json", "json_", is_flag=True, help="Print JSON; with --watch one line a change.")
@click.option("--watch", "watching", is_flag=True, help="Stay, and print each change of state.")
@click.option("--pid", type=int, help="The kage to ask, when several run here.")
@click.option("--start", is_flag=True, help="Ask no running kage: start the servers for a moment.")
@click.pass_obj
def status(options: Options, json_: bool, watching: bool, pid: int | None, start: bool) -> None:
    """Show how each server is doing in the kage that runs in this workspace.

    Without a running kage every enabled server is started for a moment. Exit code 0 whatever the
    states are: they are the answer. `kage mcp test` exits 1 when its server does not work.
    """
    here = ground(options).sound()
    if watching:
        _watch(_chosen(here, pid), json_=json_)
        return
    kages = () if start else _here(here, pid)
    if len(kages) > 1 and not json_:
        for kage in kages:
            print(f"kage {kage.pid}:")
            _table(list(kage.servers))
        return
    found = _asked(kages) if kages or pid is not None else _started(here)
    if json_:
        as_json(found)
    else:
        _table(found)


@click.command(
    epilog=examples(
        "kage mcp restart github           in the kage running here: new one up, then old one gone",
        "kage mcp restart github --fresh   and with the configuration as it is now",
    )
)
@click.argument("name")
@click.option("--fresh", is_flag=True, help="Read the configuration again first.")
@click.option("--pid", type=int, help="The kage to ask, when several run here.")
@click.pass_obj
def restart(options: Options, name: str, fresh: bool, pid: int | None) -> None:
    """Restart a server of the kage that runs in this workspace.

    The new one is up before the old one goes; when it does not come up, the old one serves on and
    the exit code is 1.
    """
    here = ground(options)
    refuse_agent(here.environ, "mcp restart")
    kage = _chosen(here, pid)
    restart_there(kage, name, fresh=fresh)
    print(f"{visible(name, single_line=True)} restarted in kage {kage.pid}")


def _here(here: Ground, pid: int | None) -> tuple[Running, ...]:
    found = running(here.paths.runtime)
    if pid is not None:
        return tuple(kage for kage in found if kage.pid == pid)
    return tuple(kage for kage in found if kage.workspace == here.workspace)


def _chosen(here: Ground, pid: int | None) -> Running:
    """Give the one running kage that is meant.

    Raises:
        UsageError: there is none, or more than one.
    """
    found = _here(here, pid)
    if len(found) == 1:
        return found[0]
    if found:
        pids = ", ".join(str(kage.pid) for kage in found)
        raise UsageError(
            f"{len(found)} kages run here, with the pids {pids}", fix="Say which one: --pid PID"
        )
    if pid is not None:
        raise UsageError(f"No running kage has the pid {pid}", fix="`kage mcp status` asks those.")
    raise UsageError(
        f"No kage runs in {here.workspace}", fix="Start one here, or name another with --pid."
    )


def _asked(kages: tuple[Running, ...]) -> list[dict[str, Any]]:
    if len(kages) == 1:
        return list(kages[0].servers)
    return [{"kage": kage.pid, **server} for kage in kages for server in kage.servers]


def _started(here: Ground) -> list[dict[str, Any]]:
    refuse_agent(here.environ, "mcp status")
    names = startable(here)

    async def work() -> list[dict[str, Any]]:
        async with connected(here, names) as up:
            return up.statuses()

    return asyncio.run(work())


def _table(servers: list[dict[str, Any]]) -> None:
    table(_HEAD, [_row(server) for server in servers])


def _row(server: dict[str, Any]) -> tuple[str, ...]:
    fault = server.get("fault")
    reason = f"{fault['stage']}: {fault['what']}" if isinstance(fault, dict) else ""
    plain = (str(server.get(key, "")) for key in ("tools", "protocol", "version"))
    advice = server.get("deprecated")
    old = f"{server.get('transport')} is deprecated: {advice}" if advice else ""
    return (
        str(server.get("name", "")),
        str(server.get("state", "")),
        _age(server.get("age")),
        *plain,
        reason or _held(server.get("held")) or old,
    )


def _held(held: object) -> str:
    """Say what waits for the person, "" for nothing."""
    if not isinstance(held, list) or not held:
        return ""
    rest = f" and {len(held) - 1} more" if len(held) > 1 else ""
    return f"held: {held[0]}{rest}"


def _age(seconds: object) -> str:
    if not isinstance(seconds, int | float):
        return ""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def _watch(kage: Running, *, json_: bool) -> None:
    try:
        for seen in watch(kage):
            if isinstance(seen, Running):
                _tell_all(seen, json_=json_)
            elif json_:
                print(json.dumps({"at": time.time(), **seen}, ensure_ascii=False), flush=True)
            else:
                _tell_change(seen)
    except KeyboardInterrupt:
        sys.exit(130)
    complain(f"the kage with pid {kage.pid} ended")


def _tell_all(kage: Running, *, json_: bool) -> None:
    if json_:
        for server in kage.servers:
            line = {"at": time.time(), "server": server, "previous": None}
            print(json.dumps(line, ensure_ascii=False), flush=True)
    else:
        _table(list(kage.servers))
        sys.stdout.flush()


def _tell_change(change: dict[str, Any]) -> None:
    server = change.get("server")
    if isinstance(server, dict):
        name, state, _, tools, protocol, _, reason = _row(server)
        more = reason or (f"{tools} tools, {protocol}" if protocol else "")
        text = f"{time.strftime('%H:%M:%S')}  {name}  {state}  {more}".rstrip()
        print(visible(text, single_line=True), flush=True)
