"""``kage mcp why``: why a tool is missing, hidden, held, asking, or named as it is."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

import click

from kage.cli.complete import complete_tool
from kage.cli.ground import Ground, Options, ground, refuse_agent
from kage.cli.output import as_json, examples
from kage.cli.servers import connected
from kage.cli.steps import Trace
from kage.cli.tracing import server_of, trace
from kage.core.sanitise import visible

_ANSWERS = {
    "missing": "is not offered to the model",
    "hidden": "is offered by name only",
    "held": "is held until you have looked at it",
    "deny": "is offered, and every call of it is refused",
    "ask": "is offered, and asks before a call",
    "allow": "is offered, and runs without a question",
    "configured": "is a configured server, and nothing stands in its way",
    "down": "is a configured server whose tools are not offered",
}


@click.command(
    epilog=examples(
        "kage mcp why github__create_issue    is it there, and if not, why",
        "kage mcp why mcp__github__create_issue --json",
        "kage mcp why bash                    kage's own tools as well",
        "kage mcp why github --start          start the server and look",
    )
)
@click.argument("name", shell_complete=complete_tool)
@click.option("--start", is_flag=True, help="Start the server for a moment to see what it offers.")
@click.option("--json", "json_", is_flag=True, help="Print JSON.")
@click.pass_obj
def why(options: Options, name: str, start: bool, json_: bool) -> None:
    """Explain why a tool is missing, hidden, held, asking or named like that.

    NAME is a tool in any spelling, or a server. A running kage is asked how the server is;
    otherwise files tell what it offered last time, and nothing is started without --start.
    """
    here = ground(options)
    status = None
    if start:
        refuse_agent(here.environ, "mcp why --start")
        server = server_of(here, name)
        status = asyncio.run(_started(here, server)) if server else None
    found = trace(here, name, status=status)
    if json_:
        as_json(_plain(found))
        return
    _print(found)


async def _started(here: Ground, name: str) -> dict[str, Any]:
    async with connected(here, [name]) as up:
        return up.status(name)


def _print(found: Trace) -> None:
    name = found.tool or found.name
    print(visible(f"{name} {_ANSWERS[found.verdict]}", single_line=True))
    broken = found.broken
    if broken is not None:
        print(visible(f"because {broken.text}", single_line=True))
        if broken.fix:
            print(visible(f"  {broken.fix}", single_line=True))
    print()
    width = max(len(step.name) for step in found.steps)
    for step in found.steps:
        mark = " " if step.holds else "!"
        print(f"{mark} {step.name.ljust(width)}  {visible(step.text, single_line=True)}")
        if step.fix and step is not broken:
            print(f"  {' ' * width}  {visible(step.fix, single_line=True)}")


def _plain(found: Trace) -> dict[str, Any]:
    broken = found.broken
    return {
        "name": found.name,
        "tool": found.tool,
        "server": found.server,
        "verdict": found.verdict,
        "why": broken.text if broken is not None else found.steps[-1].text,
        "fix": broken.fix if broken is not None else "",
        "steps": [asdict(step) for step in found.steps],
    }
