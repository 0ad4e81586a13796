"""``kage mcp call``: one call made by hand, through the same gate and seal as any other."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from kage.agent.arguments import Checker
from kage.cli.asking import at_terminal
from kage.cli.ground import Ground
from kage.cli.output import as_json as print_as_json
from kage.cli.saving import unkept, write_each
from kage.cli.servers import Up, connected, one
from kage.core.content import as_text
from kage.core.errors import KageError, UsageError
from kage.core.gate import CallRequest
from kage.core.ids import new_id
from kage.core.messages import Outcome
from kage.core.pins import HeldChange
from kage.core.redact import Redactor
from kage.core.sanitise import visible
from kage.core.tools import Invocation, Tool, ToolResult
from kage.mcp.client.calling.calls import PROTOCOL_ERROR
from kage.mcp.names import canonical_spelling
from kage.plain.jsonl import plain
from kage.plain.pins import headline, lines
from kage.plain.text import complain, told
from kage.providers.callsyntax import parse_arguments

CODES = {
    Outcome.OK: 0,
    Outcome.TOOL_ERROR: 1,
    Outcome.REFUSED: 4,
    Outcome.UNKNOWN: 5,
    Outcome.NEVER_SENT: 7,
}
SERVER_DOWN = 3
PROTOCOL_REFUSED = 6


async def call_by_hand(
    here: Ground,
    name: str,
    words: Sequence[str],
    *,
    timeout: float | None,
    print_json: bool,
    output: Path | None = None,
) -> int:
    """Call the tool called ``name``, print its result, and give the exit code (``CODES``).

    Bytes of the result are written to ``output``, a file or folder; without it they are only told.

    Raises:
        UsageError: there is no such server, tool or folder, or the arguments do not fit.
    """
    if output is not None and not output.absolute().parent.is_dir():
        raise UsageError(f"There is no folder {output.absolute().parent}")
    server = _server_of(here, name)
    spec = one(here, server)
    if timeout is not None:
        changed = dataclasses.replace(
            spec, tool_timeout=timeout, tool_timeouts={}, tool_max_time=timeout
        )
        here = here.with_server(changed)
    async with connected(here, [server], person=at_terminal()) as up:
        status = up.status(server)
        if status["state"] != "connected":
            fault = status["fault"] or {"what": status["state"], "why": "", "fix": ""}
            complain(
                told(f"server {server} is not up: {fault['what']}", fault["why"], fault["fix"])
            )
            return SERVER_DOWN
        full = canonical_spelling(name, here.settings.servers)
        if (held := _held(up, server, full)) is not None:
            complain("\n  | ".join([f"server {server} holds {headline(held)}", *lines(held)]))
            complain(f"it is not called; to decide: kage mcp pins accept {server}")
            return CODES[Outcome.REFUSED]
        tool = _find(up, server, full)
        arguments = parse_arguments(list(words), tool.spec.schema)
        faults = Checker().faults(tool.spec, arguments)
        if faults:
            raise UsageError("The arguments do not fit the tool", why="; ".join(faults))
        result = await _run(here, up, tool, arguments)
    lost = ""
    if output is not None and result.outcome is Outcome.OK:
        try:
            result = dataclasses.replace(result, content=write_each(output, result.content))
        except UsageError as error:
            lost = str(error)  # the tool ran all the same, so what it said is shown
    _print(here, tool, result, print_json=print_json)
    if lost:
        complain(lost)
        return CODES[Outcome.TOOL_ERROR]
    if result.summary.startswith(PROTOCOL_ERROR):
        return PROTOCOL_REFUSED
    return CODES[result.outcome]


def _print(here: Ground, tool: Tool, result: ToolResult, *, print_json: bool) -> None:
    if print_json:
        print_as_json(
            {
                "tool": tool.spec.name,
                "outcome": result.outcome.value,
                "content": plain(result.content),
                "structured": plain(result.structured),
            }
        )
        return
    text = visible(here.redact(as_text(result.content)))
    print(text, file=sys.stdout if result.outcome is Outcome.OK else sys.stderr)
    if any(unkept(part) for part in result.content):
        complain("bytes of the result are not kept; -o FILE writes them")


def _server_of(here: Ground, name: str) -> str:
    full = canonical_spelling(name, here.settings.servers)
    fitting = [server for server in here.settings.servers if full.startswith(f"{server}__")]
    if not fitting:
        raise UsageError(
            f"{visible(name, single_line=True)!r} names no tool of a configured server",
            fix=_nearest(full, here.settings.servers)
            or "Write <server>__<tool>; `kage mcp tools` lists them.",
        )
    return max(fitting, key=len)


def _nearest(name: str, servers: Iterable[str]) -> str:
    """Ask whether a name with another server was meant, "" when none is near."""
    from difflib import get_close_matches

    server, _, tool = name.partition("__")
    near = get_close_matches(server, servers, n=1)
    if not near:
        return ""
    meant = f"{near[0]}__{tool or '<tool>'}"
    return f"Did you mean {visible(meant, single_line=True)}?"


def _held(up: Up, server: str, name: str) -> HeldChange | None:
    """Give why a tool is held, None when it is not."""
    held = {change.name: change for change in up.manager.held() if change.server == server}
    for tool in up.manager.withheld(server):
        origin = tool.spec.server
        assert origin is not None
        if name in (tool.spec.name, f"{server}__{origin.original}"):
            return held.get(origin.original)
    return None


def _find(up: Up, server: str, name: str) -> Tool:
    tools = {tool.spec.name: tool for tool in up.offered.get(server, ())}
    raw = {
        f"{server}__{tool.spec.server.original}": tool
        for tool in tools.values()
        if tool.spec.server is not None
    }
    tool = tools.get(name) or raw.get(name)
    if tool is not None:
        return tool
    for reason in up.status(server)["dropped"]:
        if reason.startswith(f"{name.removeprefix(f'{server}__')}: "):
            why = visible(reason.partition(": ")[2], single_line=True)
            raise UsageError(f"{visible(name, single_line=True)} was left out", why=why)
    from difflib import get_close_matches

    near = get_close_matches(name, tools, n=3)
    hint = f"Did you mean {', '.join(near)}?" if near else f"`kage mcp tools {server}` lists them."
    raise UsageError(f"{server} has no tool {visible(name, single_line=True)!r}", fix=hint)


async def _run(here: Ground, up: Up, tool: Tool, arguments: dict[str, object]) -> ToolResult:
    gate = up.guard.gate(new_id("hand"), None)
    request = CallRequest(
        call_id=new_id("c"),
        tool=tool.spec,
        arguments=arguments,
        workspace=here.workspace,
        by_hand=True,
    )
    decision = await gate.decide(request)
    if not decision.allowed:
        text = f"{decision.reason} {decision.fix}".strip()
        return ToolResult.error(text, outcome=Outcome.REFUSED)
    began = time.monotonic()
    result = ToolResult.error("interrupted", outcome=Outcome.UNKNOWN)
    try:
        result = await tool.run(
            Invocation(
                call_id=request.call_id,
                arguments=arguments,
                workspace=here.workspace,
                roots=(here.workspace,),
                scratch=here.paths.data / "artifacts",
                progress=partial(_progress, here.redact),
            )
        )
    except asyncio.CancelledError:
        raise
    except KageError as error:
        result = ToolResult.error(str(error))
    finally:
        await gate.finish(
            request,
            decision,
            result.outcome,
            seconds=time.monotonic() - began,
            result=as_text(result.content),
        )
    return result


def _progress(redact: Redactor, done: float, total: float | None, message: str) -> None:
    if sys.stderr.isatty():
        of = f"/{total:g}" if total else ""
        line = visible(redact(f"{done:g}{of} {message}"), single_line=True)
        print(f"\r{line}", end="", file=sys.stderr)
