"""``kage mcp pins``: which definitions of tools are known, what changed, and what is to count."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import click

from kage.cli.complete import complete_server
from kage.cli.ground import Ground, Options, ground, refuse_agent
from kage.cli.output import as_json, examples, table
from kage.cli.pinlock import any_down, lock
from kage.cli.pinning import book_of
from kage.cli.servers import Up, connected, one, startable
from kage.core.canonical import digest
from kage.core.errors import UsageError
from kage.core.pins import INSTRUCTIONS, HeldChange, PinAnswer
from kage.core.sanitise import exact, visible
from kage.permissions.decisions.log import DecisionLog
from kage.permissions.pins.book import PinBook, PinRow
from kage.plain.jsonl import plain
from kage.plain.pins import headline, lines
from kage.plain.text import complain

_JSON = click.option("--json", "json_", is_flag=True, help="Print JSON.")
_WHICH = click.argument("which", metavar="SERVER[/TOOL]", shell_complete=complete_server)
_SAID = {
    PinAnswer.ACCEPT: "accepted",
    PinAnswer.REFUSE: "refused: it stays held, and is not asked about again",
    PinAnswer.DISABLE: "disabled: it is not offered any more, whatever it becomes",
}


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "kage mcp pins                     what is known; starts nothing",
        "kage mcp pins diff github         start it, show what is held and how it differs",
        "kage mcp pins accept github/search_issues",
        "kage mcp pins lock --check        for CI: is everything what mcp.lock says?",
    ),
)
@_JSON
@click.pass_context
def pins(ctx: click.Context, json_: bool) -> None:
    """Definitions of tools you know, and those that changed and are held.

    What a server says of a tool counts from its first use. A tool that changed since, or came back
    under another name, is not offered to the model and not called until you accept it.
    """
    if ctx.invoked_subcommand is None:
        _list(ground(ctx.obj), json_=json_)


@pins.command("list")
@_JSON
@click.pass_obj
def list_(options: Options, json_: bool) -> None:
    """Show every definition that is known; starts nothing."""
    _list(ground(options), json_=json_)


@pins.command(
    epilog=examples("kage mcp pins diff", "kage mcp pins diff github/search_issues --json")
)
@click.argument("which", metavar="[SERVER[/TOOL]]", default="", shell_complete=complete_server)
@_JSON
@click.pass_obj
def diff(options: Options, which: str, json_: bool) -> None:
    """Start the servers and show what is held and how it differs.

    Exit code 0 when nothing is held, else 1.
    """
    here = ground(options).sound()
    refuse_agent(here.environ, "mcp pins diff")
    down, changes = asyncio.run(_looked(here, which))
    if json_:
        as_json([_described(change) for change in changes])
    else:
        _show(here, changes)
    sys.exit(1 if changes or down else 0)


@pins.command(
    epilog=examples(
        "kage mcp pins accept github                   show everything that changed, then ask",
        "kage mcp pins accept github/search --yes --hash 3f9c…   exactly what was shown",
    )
)
@_WHICH
@click.option("--yes", is_flag=True, help="Do not ask; needs --hash.")
@click.option("--hash", "hash_", default="", metavar="HASH", help="What diff printed.")
@click.pass_obj
def accept(options: Options, which: str, yes: bool, hash_: str) -> None:
    """Let a definition count as it is now, after a look at the difference."""
    here = ground(options).sound()
    refuse_agent(here.environ, "mcp pins accept")
    if yes and not hash_:
        raise UsageError("--yes needs --hash", fix=f"See it: kage mcp pins diff {which}")

    def sure(changes: Sequence[HeldChange]) -> bool:
        if yes:
            if hash_ != _hash(changes):
                raise UsageError("That is not the hash of what is held now")
            return True
        _show(here, changes)
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError(
                "Nobody is here to be asked",
                fix="In a terminal kage asks; a script gives --yes and --hash.",
            )
        return click.confirm("Let this count as it is now?", default=False)

    sys.exit(asyncio.run(_answer(here, which, PinAnswer.ACCEPT, sure)))


@pins.command(epilog=examples("kage mcp pins refuse github/search_issues"))
@_WHICH
@click.pass_obj
def refuse(options: Options, which: str) -> None:
    """Keep what is held as it is now held, and stop asking about it."""
    here = ground(options).sound()
    refuse_agent(here.environ, "mcp pins refuse")
    sys.exit(asyncio.run(_answer(here, which, PinAnswer.REFUSE, lambda changes: True)))


@pins.command(epilog=examples("kage mcp pins disable github/search_issues"))
@_WHICH
@click.pass_obj
def disable(options: Options, which: str) -> None:
    """Never offer what is held now again, whatever it becomes; forget takes that back."""
    here = ground(options).sound()
    refuse_agent(here.environ, "mcp pins disable")
    sys.exit(asyncio.run(_answer(here, which, PinAnswer.DISABLE, lambda changes: True)))


@pins.command(epilog=examples("kage mcp pins forget github", "kage mcp pins forget github/search"))
@_WHICH
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def forget(options: Options, which: str, yes: bool) -> None:
    """Know nothing of a server or a tool any more: its next use is its first."""
    here = ground(options)
    refuse_agent(here.environ, "mcp pins forget")
    server, tool = _parts(which)
    book = _book(here)
    rows = [
        row for row in book.known() if row.server == server and (tool is None or row.name == tool)
    ]
    if not rows:
        print("Nothing of that is known")
        sys.exit(1)
    count = f"{len(rows)} definition{'s' * (len(rows) != 1)}"
    if not yes:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError(f"This forgets {count}", fix="Say so with --yes.")
        if not click.confirm(f"Forget {count}? What they are next time counts then", default=False):
            sys.exit(1)
    book.forget(rows)
    print(f"{count} forgotten")


pins.add_command(lock)


def _list(here: Ground, *, json_: bool) -> None:
    rows = _book(here).known()
    if json_:
        as_json([_row(row) for row in rows])
    elif not rows:
        print("No definition is known yet: they are with the first use of a server.")
    else:
        table(
            ("SERVER", "TOOL", "STATE", "SINCE", "ORIGIN"),
            [
                (row.server, _name(row.name), _state(row), row.stand.since[:10], row.origin)
                for row in rows
            ],
        )


def _book(here: Ground) -> PinBook:
    log = DecisionLog(here.paths.data / "decisions", redact=here.redact, on_trouble=complain)
    book = book_of(here, log, records=False)
    book.listen(complain)
    return book


def _row(row: PinRow) -> dict[str, Any]:
    return {
        "server": row.server,
        "origin": row.origin,
        "tool": row.name,
        "state": _state(row),
        "digest": row.stand.digest,
        "since": row.stand.since,
    }


def _state(row: PinRow) -> str:
    if row.stand.disabled:
        return "disabled"
    return "known" if row.stand.digest else "refused"


def _name(name: str) -> str:
    return name if name != INSTRUCTIONS else "(instructions)"


def _parts(which: str) -> tuple[str, str | None]:
    """Take SERVER[/TOOL] apart; SERVER/ alone means its instructions."""
    server, slash, tool = which.partition("/")
    return server, tool if slash else None


async def _looked(here: Ground, which: str) -> tuple[bool, tuple[HeldChange, ...]]:
    """Start the servers meant; whether one was down, and what is held of them."""
    server, tool = _parts(which)
    names = [one(here, server).name] if server else startable(here)
    async with connected(here, names, even_disabled=bool(server)) as up:
        return any_down(up, names), _held(up, tool)


async def _answer(here: Ground, which: str, answer: PinAnswer, sure: Any) -> int:
    server, tool = _parts(which)
    name = one(here, server).name
    async with connected(here, [name], even_disabled=True) as up:
        if any_down(up, [name]):
            return 1
        changes = _held(up, tool)
        if not changes:
            print(f"Nothing of {visible(which, single_line=True)} is held")
            return 1
        if not sure(changes):
            print("It stays held")
            return 1
        for change in changes:
            if not up.guard.pins.answer(change, answer):
                raise UsageError(f"{exact(change.label)} changed meanwhile", fix="Look again.")
            print(f"{exact(change.server)}/{exact(_name(change.name))} is {_SAID[answer]}")
    return 0


def _held(up: Up, tool: str | None) -> tuple[HeldChange, ...]:
    return tuple(change for change in up.manager.held() if tool is None or change.name == tool)


def _hash(changes: Sequence[HeldChange]) -> str:
    """Give what stands for exactly these changes."""
    if len(changes) == 1:
        return changes[0].digest
    return digest({"changes": sorted(f"{c.server}/{c.name} {c.digest}" for c in changes)})


def _described(change: HeldChange) -> dict[str, Any]:
    return {**plain(change), "why": change.why, "lines": lines(change)}


def _show(here: Ground, changes: Sequence[HeldChange]) -> None:
    if not changes:
        print("Nothing is held")
        return
    for change in changes:
        print(here.redact(f"{exact(change.server)}  {headline(change)}"))
        for line in lines(change):
            print(here.redact(f"    {line}"))
    print(f"hash  {_hash(changes)}")
