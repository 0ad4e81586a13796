"""``kage mcp resources|read|prompts|prompt``: what a server offers beside tools, by hand."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import click

from kage.agent import prompts as lines
from kage.agent.byhand import GET, READ, act, by_hand
from kage.cli.complete import complete_server
from kage.cli.ground import Ground, Options, ground, refuse_agent
from kage.cli.output import as_json, examples, table
from kage.cli.saving import write_one
from kage.cli.servers import Up, connected, one
from kage.core.content import Content, as_text
from kage.core.errors import KageError, Refused, UsageError
from kage.core.gate import Decision
from kage.core.ids import new_id
from kage.core.offers import FilledPrompt, Offers
from kage.core.sanitise import clip, visible
from kage.core.servers import ServerState
from kage.plain.jsonl import plain
from kage.plain.text import complain, told

_JSON = click.option("--json", "json_", is_flag=True, help="Print JSON.")
_NAME = click.argument("name", shell_complete=complete_server)
_DOWN, _REFUSED = 3, 4  # exit codes, as of ``kage mcp call``


@click.command(
    epilog=examples("kage mcp resources docs", "kage mcp resources docs --json | jq '.resources'")
)
@_NAME
@_JSON
@click.pass_obj
def resources(options: Options, name: str, json_: bool) -> None:
    """List the resources and templates of a server. Exit code 3 when it is not up."""
    here, server = _begin(options, name, "mcp resources")
    offers = asyncio.run(_listed(here, server))
    if json_:
        as_json({key: plain(value) for key, value in _fields(offers).items()})
        return
    _complain_of(offers)
    rows = [(each.uri, each.name, each.mime, _about(each)) for each in offers.resources]
    rows += [(each.template, each.name, each.mime, _about(each)) for each in offers.templates]
    table(("URI", "NAME", "TYPE", "DESCRIPTION"), rows)


@click.command(
    epilog=examples(
        "kage mcp read docs memo://note/1",
        "kage mcp read docs memo://logo -o logo.png",
        "kage mcp read docs memo://note/1 --json",
    )
)
@_NAME
@click.argument("uri")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the bytes to this file.",
)
@_JSON
@click.pass_obj
def read(options: Options, name: str, uri: str, output: Path | None, json_: bool) -> None:
    """Read the resource at URI by hand; deny rules still hold.

    Exit codes: 0 ok, 1 it could not be read, 3 the server is not up, 4 refused.
    """
    here, server = _begin(options, name, "mcp read")
    content = asyncio.run(_read(here, server, uri))
    if output is not None:
        write_one(output, content)
    elif json_:
        as_json({"server": server, "uri": uri, "contents": plain(content)})
    else:
        print(visible(as_text(content)))


@click.command(epilog=examples("kage mcp prompts docs", "kage mcp prompts docs --json"))
@_NAME
@_JSON
@click.pass_obj
def prompts(options: Options, name: str, json_: bool) -> None:
    """List the prompts of a server with their arguments. Exit code 3 when it is not up."""
    here, server = _begin(options, name, "mcp prompts")
    offers = asyncio.run(_listed(here, server))
    if json_:
        as_json({"server": server, "prompts": plain(offers.prompts)})
        return
    _complain_of(offers)
    rows = []
    for each in offers.prompts:
        words = (arg.name if arg.required else f"[{arg.name}]" for arg in each.arguments)
        rows.append((each.name, " ".join(words), _about(each)))
    table(("NAME", "ARGUMENTS", "DESCRIPTION"), rows)


@click.command(
    epilog=examples(
        "kage mcp prompt docs review path=a.py",
        "kage mcp prompt docs review a.py --json",
        'kage -p "/docs:review path=a.py"                  send it to the model',
    )
)
@_NAME
@click.argument("prompt")
@click.argument("arguments", nargs=-1)
@_JSON
@click.pass_obj
def prompt(options: Options, name: str, prompt: str, arguments: Sequence[str], json_: bool) -> None:
    """Have PROMPT filled in by hand and print its messages; deny rules still hold.

    Exit codes: 0 ok, 1 it could not be filled in, 3 the server is not up, 4 refused.
    """
    here, server = _begin(options, name, "mcp prompt")
    filled = asyncio.run(_filled(here, server, prompt, arguments))
    if json_:
        as_json(plain(filled))
        return
    for message in filled.messages:
        print(f"{message.role}:")
        print(visible(as_text(message.content)))


VERBS = (resources, read, prompts, prompt)


def _begin(options: Options, name: str, verb: str) -> tuple[Ground, str]:
    here = ground(options).sound()
    refuse_agent(here.environ, verb)
    return here, one(here, name).name


@asynccontextmanager
async def _up(here: Ground, server: str) -> AsyncIterator[Up]:
    """Start one server for the time of a verb; leave with code 3 when it is not up."""
    async with connected(here, [server]) as up:
        status = next(item for item in up.manager.statuses() if item.name == server)
        if status.state not in (ServerState.CONNECTED, ServerState.IDLE):
            fault = status.fault
            what = f"server {server} is not up: {fault.what if fault else status.state.value}"
            complain(told(what, fault.why, fault.fix) if fault else what)
            sys.exit(_DOWN)
        yield up


async def _listed(here: Ground, server: str) -> Offers:
    async with _up(here, server) as up:
        return await up.manager.beside.listed(server)


async def _read(here: Ground, server: str, uri: str) -> tuple[Content, ...]:
    async with _up(here, server) as up:
        request = act(
            up.manager.beside.provenance(server), READ, {"uri": uri}, workspace=here.workspace
        )

        async def work(_: Decision) -> tuple[Content, ...]:
            return await up.manager.beside.read_resource(server, uri)

        with _telling():
            gate = up.guard.gate(new_id("hand"), None)
            return await by_hand(gate, request, work, content=lambda content: content)


async def _filled(here: Ground, server: str, name: str, words: Sequence[str]) -> FilledPrompt:
    async with _up(here, server) as up:
        offer = lines.offered(await up.manager.beside.listed(server), name)
        given = lines.arguments(list(words), offer, name=name)
        request = act(
            up.manager.beside.provenance(server),
            GET,
            {"name": name, "arguments": given},
            workspace=here.workspace,
        )

        async def work(_: Decision) -> FilledPrompt:
            return await up.manager.beside.get_prompt(server, name, given)

        with _telling():
            gate = up.guard.gate(new_id("hand"), None)
            return await by_hand(gate, request, work, content=lines.content)


@contextmanager
def _telling() -> Iterator[None]:
    """Tell what went wrong and leave with its exit code."""
    try:
        yield
    except UsageError:
        raise
    except KageError as error:
        complain(str(error))
        sys.exit(_REFUSED if isinstance(error, Refused) else 1)


def _fields(offers: Offers) -> dict[str, Any]:
    return {
        "server": offers.server,
        "resources": offers.resources,
        "templates": offers.templates,
        "completes": offers.completes,
        "watches": offers.watches,
        "dropped": offers.dropped,
    }


def _about(each: object) -> str:
    text = getattr(each, "description", "") or getattr(each, "title", "")
    return clip(visible(text, single_line=True), 80)


def _complain_of(offers: Offers) -> None:
    for reason in offers.dropped:
        complain(f"server {offers.server}: left out {reason}")
