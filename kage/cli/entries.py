"""``kage mcp add | add-json``: put a server entry into a settings file."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import click

from kage.cli.change import (
    Prepared,
    Scope,
    ask,
    dry_option,
    finish,
    json_option,
    mine,
    on_terminal,
    prepare,
    say,
    scope_option,
)
from kage.cli.ground import Ground, Options
from kage.cli.output import examples
from kage.config.edit import TomlText
from kage.config.secrets import Literal, literals, without
from kage.config.servers import bad_name
from kage.core.errors import KageError, UsageError
from kage.core.sanitise import visible

_ADDRESS = re.compile(r"(?i)[a-z][a-z0-9+.-]*://")  # which of them are taken is judged later
_AFTER = "What belongs to the server's own command comes after --: kage mcp add NAME -- npx -y …"


class _Dashed(click.Command):
    """A command whose last words are somebody else's command line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            text = f"There is no option {error.option_name}. {_AFTER}"
            raise click.UsageError(text, ctx) from error


def _entry_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give ``add`` and ``add-json`` what they share."""
    for option in (
        click.option("--to-variables", is_flag=True, help="Write ${NAME} in place of secrets."),
        click.option("--force", is_flag=True, help="With --test: write it though it fails."),
        click.option("--test", "test_", is_flag=True, help="Start it first; write it if it works."),
        click.option("--replace", is_flag=True, help="In place of the entry of that name."),
        json_option,
        dry_option,
        scope_option,
    ):
        command = option(command)
    return command


@click.command(
    cls=_Dashed,
    epilog=examples(
        "kage mcp add filesystem -- npx -y @modelcontextprotocol/server-filesystem .",
        "kage mcp add github -e GITHUB_TOKEN='${GITHUB_TOKEN}' -- github-mcp stdio",
        "kage mcp add docs https://example.invalid/mcp -H Authorization='Bearer ${DOCS_TOKEN}'",
        "kage mcp add db --scope project --required --test -- uvx db-mcp",
        "kage mcp add fs --type stdio --command npx --args -y,server-filesystem,.",
    ),
)
@click.argument("name")
@click.argument("words", nargs=-1, metavar="[-- COMMAND ARGS… | URL]")
@click.option("--transport", "--type", help="stdio, http or sse; follows from the rest.")
@click.option("--command", help="The program, instead of words after --.")
@click.option("--args", help="Its arguments, as one list with commas.")
@click.option("--url", help="The address of an HTTP server.")
@click.option("-e", "--env", multiple=True, metavar="K=V", help="A variable of the server.")
@click.option("-H", "--header", multiple=True, metavar="K=V", help="Sent with every request.")
@click.option("--env-pass", multiple=True, metavar="K", help="A variable copied from kage's own.")
@click.option("--cwd", help="The folder it runs in.")
@click.option("--safety", help="safe, moderate or dangerous: how much the question shows.")
@click.option("--sandbox", help="none, workspace (it writes only there) or no-network.")
@click.option("--timeout", help="For connecting and listing, like 30s.")
@click.option("--tool-timeout", help="Idle time of one call, like 60s.")
@click.option("--required", is_flag=True, help="kage -p exits 3 when it cannot start.")
@click.option("--lazy", is_flag=True, help="Start it at its first call.")
@click.option("--disabled", is_flag=True, help="Write it, but do not start it.")
@_entry_options
@click.pass_obj
def add(options: Options, /, name: str, words: tuple[str, ...], **flags: Any) -> None:
    """Add the server NAME: a command after --, or a URL."""
    here = mine(options, "mcp add")
    _put(here, name, _table(words, flags), flags)


@click.command(
    "add-json",
    epilog=examples(
        """kage mcp add-json time '{"command": "uvx", "args": ["mcp-server-time"]}'""",
        "kage mcp add-json docs - < entry.json",
    ),
)
@click.argument("name")
@click.argument("text", metavar="JSON|-")
@_entry_options
@click.pass_obj
def add_json(options: Options, /, name: str, text: str, **flags: Any) -> None:
    """Add the server NAME from an entry as other hosts write it; - reads it from stdin."""
    from kage.config.importers import judged, plain_entry

    here = mine(options, "mcp add-json")
    text = sys.stdin.read() if text == "-" else text
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError("The entry is no JSON", why=str(error)) from error
    found = judged(plain_entry("entry", raw), Path("entry"))
    if found.problem:
        raise UsageError("The entry cannot be used", why=found.problem)
    for note in found.notes:
        say(note)
    _put(here, name, dict(found.table), flags)


def _table(words: tuple[str, ...], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Make the entry from the flags.

    Raises:
        UsageError: they do not fit together.
    """
    argv = list(words)
    url = flags["url"]
    if len(argv) == 1 and _ADDRESS.match(argv[0]) and not url and not flags["command"]:
        url, argv = argv[0], []
    if flags["command"]:
        argv = [flags["command"], *_listed(flags["args"]), *argv]
    elif flags["args"]:
        argv += _listed(flags["args"])
    if bool(argv) == bool(url):
        what = "There are both a command and a URL" if url else "There is no command and no URL"
        raise UsageError(what, fix="kage mcp add NAME -- COMMAND ARGS…, or kage mcp add NAME URL")
    found: dict[str, Any] = {}
    if argv:
        found |= {"command": argv[0], "args": argv[1:]}
    optional = {
        "cwd": flags["cwd"],
        "env": _pairs(flags["env"], "-e"),
        "env_pass": list(flags["env_pass"]),
        "url": url,
        "transport": flags["transport"],
        "headers": _pairs(flags["header"], "-H"),
        "safety_level": flags["safety"],
        "sandbox": flags["sandbox"],
        "timeout": flags["timeout"],
        "tool_timeout": flags["tool_timeout"],
        "required": flags["required"],
        "start": "lazy" if flags["lazy"] else None,
        "disabled": flags["disabled"],
    }
    found |= {key: value for key, value in optional.items() if value}
    if not found.get("args", True):
        del found["args"]
    if found.get("transport") == ("stdio" if argv else "http"):
        del found["transport"]  # it follows
    return found


def _listed(text: str | None) -> list[str]:
    return text.split(",") if text else []


def _pairs(given: tuple[str, ...], flag: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given:
        key, sign, value = pair.partition("=")
        if flag == "-H" and (not sign or ":" in key):  # as HTTP writes it
            key, sign, value = pair.partition(":")
            value = value.strip()
        if not sign or not key.strip():
            raise UsageError(f"{flag} takes NAME=VALUE", fix=f"{flag} NAME='${{NAME}}'")
        found[key.strip()] = value
    return found


def _put(here: Ground, name: str, table: dict[str, Any], flags: Mapping[str, Any]) -> None:
    _check_name(name)
    scope = cast("Scope", flags["scope"] or "user")
    path = ("mcp", "servers", name)
    found = literals(name, table)
    if found and _moved(found, flags, scope):
        table = without(table, found)

    def edit(text: TomlText) -> None:
        if text.get(path) is not None and not flags["replace"]:
            raise UsageError(
                f"{name} is already in {text.file}:{text.line(path)}",
                fix="--replace writes it anew.",
            )
        text.put(path, table)

    prepared = prepare(here, scope, edit)
    _warn(here, name, prepared)
    if flags["test_"] and not flags["dry_run"]:
        _tested(here, name, prepared, flags)
    done = finish(here, prepared, name, flags, trust=True)
    offer = done and on_terminal() and not (flags["test_"] or flags["json_"]) and scope == "user"
    if offer and ask(f"Start {name} now to see whether it works?"):
        _try(here, name, prepared)


def _check_name(name: str) -> None:
    from kage.config.importers import suggested

    if problem := bad_name(name):
        better = suggested(name)
        raise UsageError(
            f"{visible(name, single_line=True)!r} {problem}",
            why="letters, digits, . - and single _, at most 32 characters",
            fix=f"Take {better}, for example." if better else "",
        )


def _moved(found: tuple[Literal, ...], flags: Mapping[str, Any], scope: Scope) -> bool:
    """Say whether the secrets are to be kept in variables; warn when they are not."""
    where = ", ".join(one.where for one in found)
    names = ", ".join(sorted({one.variable for one in found}))
    text = f"{where} would stand in the file in plain text"
    if flags["to_variables"] or (
        on_terminal()
        and not flags["json_"]
        and ask(f"{text}. Write a variable ({names}) instead, and set it yourself?")
    ):
        say(f"{where}: written as a variable; set {names} before kage starts")
        return True
    more = ", and the whole team would read it" if scope == "project" else ""
    say(f"{text}{more}; --to-variables writes {names} instead")
    return False


def _warn(here: Ground, name: str, prepared: Prepared) -> None:
    for entry in here.loaded.entries:
        if entry.spec.name == name and entry.spec.place and entry.spec.place.file != prepared.file:
            say(f"{name} stands in {entry.spec.place}, too")


def _tested(here: Ground, name: str, prepared: Prepared, flags: Mapping[str, Any]) -> None:
    if not _try(here, name, prepared, quiet=bool(flags["json_"])) and not flags["force"]:
        raise KageError(f"{name} does not work and was not written", fix="--force writes it.")


def _try(here: Ground, name: str, prepared: Prepared, *, quiet: bool = False) -> bool:
    from kage.cli.trial import print_fault, print_report, try_server, works

    spec = prepared.spec(name)
    if spec is None:
        return False
    if prepared.scope == "project":  # the person who types it in is who is asked
        import dataclasses

        spec = dataclasses.replace(spec, origin="user", cwd=spec.cwd)
    report = asyncio.run(try_server(here, spec))
    (print_fault if quiet else print_report)(report)
    return works(report)
