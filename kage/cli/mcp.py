"""``kage mcp …``: look at servers, try them, call their tools; or be a server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from kage.cli.complete import complete_server, complete_tool
from kage.cli.entries import add, add_json
from kage.cli.exchange import export, import_
from kage.cli.ground import Ground, Options, ground, refuse_agent
from kage.cli.journal import log
from kage.cli.login import login, logout
from kage.cli.offers import VERBS as OFFERS
from kage.cli.origins import show_origins
from kage.cli.output import as_json, duration, examples, table
from kage.cli.pins import pins
from kage.cli.servers import connected, entries, entry, one, startable
from kage.cli.status import restart, status
from kage.cli.stub import stub
from kage.cli.switches import disable, enable, remove
from kage.cli.trial import print_fault, print_report, try_server, works
from kage.cli.trust import trust
from kage.cli.why import why
from kage.core.sanitise import visible
from kage.core.servers import ServerState
from kage.plain.text import complain

_JSON = click.option("--json", "json_", is_flag=True, help="Print JSON.")


@click.group(
    name="mcp",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "kage mcp list                                     what is configured",
        "kage mcp add filesystem -- npx -y @modelcontextprotocol/server-filesystem .",
        "kage mcp import                                   what other hosts have",
        "kage mcp test filesystem                          start it, look, stop it",
        "kage mcp call filesystem__read_file path=README.md",
        "kage mcp serve --read-only                        offer read, ls, find, grep",
    ),
)
def group() -> None:
    """MCP servers: add, list, test, call them; or serve kage's own tools."""


_VERBS = (
    add,
    add_json,
    remove,
    enable,
    disable,
    import_,
    export,
    status,
    restart,
    trust,
    pins,
    stub,
    log,
    why,
)
for verb in _VERBS:
    group.add_command(verb)
for verb in (*OFFERS, login, logout):
    group.add_command(verb)
group.add_command(remove, "rm")


@group.command(
    "list",
    epilog=examples("kage mcp list", "kage mcp list --json | jq -r '.[].name'"),
)
@_JSON
@click.pass_obj
def list_(options: Options, json_: bool) -> None:
    """Show every configured server; starts nothing."""
    here = ground(options)
    if json_:
        as_json([entry(spec, here) for spec in entries(here)])
    elif not (entries(here) or here.loaded.faults):
        print(f"No servers in {here.paths.config / 'config.toml'}. Add one:\n")
        print("  kage mcp add filesystem -- npx -y @modelcontextprotocol/server-filesystem .")
        print("  kage mcp import      takes over those of other hosts")
    else:
        rows = [entry(spec, here) for spec in entries(here)]
        table(
            ("NAME", "TYPE", "ENABLED", "ORIGIN", "ENDPOINT"),
            [(r["name"], r["transport"], _on(r), r["origin"], r["endpoint"]) for r in rows],
        )
    here.sound()


@group.command(
    epilog=examples(
        "kage mcp get filesystem",
        "kage mcp get filesystem --json",
        "kage mcp get filesystem --origin   where each value comes from",
    )
)
@click.argument("name", shell_complete=complete_server)
@click.option("--origin", is_flag=True, help="Show where each value comes from; starts nothing.")
@_JSON
@click.pass_obj
def get(options: Options, name: str, origin: bool, json_: bool) -> None:
    """Show one server: its entry, and what it offers (it is started and stopped).

    Exit code 0 also when the server is down: state and reason are what it shows. Scripts that
    want to know whether a server works use `kage mcp test`.
    """
    here = ground(options).sound()
    spec = one(here, name)
    if origin:
        show_origins(here, name, json_=json_)
        return
    details: dict[str, Any] = entry(spec, here)
    if details["state"] == "enabled":
        refuse_agent(here.environ, "mcp get")
        details.update(asyncio.run(_offers(here, name)))
    if json_:
        as_json(details)
        return
    offered, left_out = details.pop("tools", []), details.pop("dropped", [])
    details.update({kind: str(count or "") for kind, count in details.pop("counts", {}).items()})
    for key, value in details.items():
        if key == "fault":
            print_fault(details)
        elif value not in ("", [], {}, None):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            print(f"{key}: {visible(text, single_line=True)}")
    for reason in left_out:
        print(visible(f"left out: {reason}", single_line=True))
    if offered:
        print("tools:")
        table(("NAME", "RAW", "TITLE"), [(t["name"], t["raw"], t["title"]) for t in offered])


async def _offers(here: Ground, name: str) -> dict[str, Any]:
    async with connected(here, [name]) as up:
        counts = (await up.manager.beside.listed(name)).counts
        return {**up.offers(name), "counts": counts}


@group.command(epilog=examples("kage mcp test filesystem", "kage mcp test filesystem --json"))
@click.argument("name", shell_complete=complete_server)
@_JSON
@click.pass_obj
def test(options: Options, name: str, json_: bool) -> None:
    """Start a server, list its tools, stop it. Exit code 0 when it works, else 1."""
    here = ground(options).sound()
    refuse_agent(here.environ, "mcp test")
    spec = one(here, name)

    report = asyncio.run(try_server(here, spec))
    if json_:
        as_json(report)
    else:
        print_report(report)
    sys.exit(0 if works(report) else 1)


@group.command(epilog=examples("kage mcp tools", "kage mcp tools filesystem --json"))
@click.argument("name", required=False, shell_complete=complete_server)
@_JSON
@click.pass_obj
def tools(options: Options, name: str | None, json_: bool) -> None:
    """List the tools of all servers, or of one, by the names the model sees.

    Exit code 1 when a server was down, so that its tools are missing.
    """
    here = ground(options).sound()
    refuse_agent(here.environ, "mcp tools")
    names = [one(here, name).name] if name else startable(here)

    async def work() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        async with connected(here, names, even_disabled=bool(name)) as up:
            return up.tools(), [up.status(server) for server in names]

    found, statuses = asyncio.run(work())
    if json_:
        as_json(found)
    else:
        table(("NAME", "DESCRIPTION"), [(t["name"], t["summary"]) for t in found])
        for tool in found:
            for text in tool["warnings"]:
                print(visible(f"warning: {tool['name']}: {text}", single_line=True))
    _exit_by(statuses)


@group.command(
    epilog=examples(
        "kage mcp call filesystem__read_file path=README.md",
        "kage mcp call filesystem__read_file README.md --json",
        "kage mcp call db__query limit:=10 where:=[1,2] --timeout 2m",
        "kage mcp call browser__screenshot -o page.png",
    )
)
@click.argument("tool", shell_complete=complete_tool)
@click.argument("arguments", nargs=-1)
@click.option("--timeout", callback=duration, help="The most the call may take: 120, or 2m.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write pictures and other bytes to this file or folder; else the text.",
)
@_JSON
@click.pass_obj
def call(
    options: Options, /, tool: str, arguments: Sequence[str], json_: bool, **flags: Any
) -> None:
    """Call TOOL by hand: its own approval; deny rules still hold.

    ARGUMENTS are key=value (made to fit the schema), key:=JSON, bare words in the order of the
    required properties, or one JSON object.

    Exit codes: 0 ok, 1 the tool failed, 3 the server is not up, 4 refused, 5 outcome unknown,
    6 the server answered with a protocol error, 7 never sent.
    """
    here = ground(options).sound()
    refuse_agent(here.environ, "mcp call")
    from kage.cli.call import call_by_hand

    timeout, output = flags["timeout"], flags["output"]
    work = call_by_hand(here, tool, arguments, timeout=timeout, print_json=json_, output=output)
    sys.exit(asyncio.run(work))


@group.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def serve(options: Options, arguments: Sequence[str]) -> None:
    """Offer kage's own tools to any MCP client over stdin and stdout."""
    from kage.cli.serve import main  # which also runs without this file, to start faster

    sys.exit(main(list(arguments), config_file=options.config_file))


def _on(row: dict[str, Any]) -> str:
    state = str(row["state"])
    return {"enabled": "yes", "disabled": "no"}.get(state, state)


def _exit_by(statuses: list[dict[str, Any]]) -> None:
    for server in statuses:
        for reason in server["dropped"]:
            complain(f"server {server['name']}: left out {reason}")
    down = [server for server in statuses if server["state"] != ServerState.CONNECTED.value]
    for server in down:
        print_fault(server)
    if down:
        sys.exit(1)
