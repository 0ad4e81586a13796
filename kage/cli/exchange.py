"""``kage mcp import | export``: servers from and for other hosts."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import click

from kage.cli.change import (
    Edit,
    Prepared,
    Scope,
    ask,
    file_of,
    json_option,
    on_terminal,
    prepare,
    safe_diff,
    say,
    scope_option,
    write,
)
from kage.cli.complete import complete_server
from kage.cli.ground import Ground, Options, ground, refuse_agent
from kage.cli.output import as_json, examples
from kage.config.documents import Unreadable
from kage.config.edit import TomlText
from kage.config.importers import FORMATS, Foreign, Found, Surroundings, known_places, read
from kage.config.importers import suggested as better_name
from kage.config.importers.powers import without_powers
from kage.config.rewrite import preview
from kage.config.secrets import literals, shown, without
from kage.config.servers import bad_name
from kage.core.errors import ConfigError, UsageError
from kage.core.sanitise import visible

Act = Literal["add", "replace", "same", "skip", "bad"]
_MARKS = {"add": "+", "replace": "~", "same": "=", "skip": "-", "bad": "!"}


@dataclass(slots=True, kw_only=True)
class Item:
    """What becomes of one entry of another host."""

    source: Found
    foreign: Foreign
    name: str  # in kage
    act: Act
    reason: str = ""
    table: dict[str, Any] = field(default_factory=dict)

    @property
    def writes(self) -> bool:
        """Whether it goes into the file."""
        return self.act in {"add", "replace"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the person said about the entries."""

    only: frozenset[str] = frozenset()
    names: Mapping[str, str] = field(default_factory=dict)  # old to new
    conflict: str = "skip"
    variables: bool = False
    powers: bool = False  # take what only a person's own file may say


@click.command(
    "import",
    epilog=examples(
        "kage mcp import                                  what other hosts have; writes nothing",
        "kage mcp import ~/.codex/config.toml --apply",
        "kage mcp import .vscode/mcp.json --scope project --only fetch --apply",
        "kage mcp import servers.json --from langchain --rename 'old name=new-name'",
    ),
)
@click.argument("path", default="auto", metavar="[PATH|auto]")
@click.option("--from", "format_name", type=click.Choice(list(FORMATS)), help="Whose file it is.")
@click.option("--apply", is_flag=True, help="Write it; without this it is only shown.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this server.")
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="Under another name.")
@click.option(
    "--on-conflict",
    type=click.Choice(["skip", "rename", "replace"]),
    default="skip",
    show_default=True,
    help="What to do with a name that is taken by another entry.",
)
@click.option("--to-variables", is_flag=True, help="Write ${NAME} in place of secrets.")
@click.option(
    "--with-powers",
    is_flag=True,
    help="Also take what no project may say: locked, headers_command, all variables and the like.",
)
@scope_option
@json_option
@click.pass_obj
def import_(options: Options, /, path: str, **flags: Any) -> None:
    """Take over servers other hosts have, from a file or from where they are known to be.

    A bad entry costs only itself. What kage has no word for is told. Exit code 1 when nothing
    could be taken over.
    """
    here = ground(options)
    if flags["apply"]:
        refuse_agent(here.environ, "mcp import")
    scope = cast("Scope", flags["scope"] or "user")
    found, failed = sources(here, path, flags["format_name"], scope)
    items = plan(here, scope, found, _wishes(flags))
    prepared = prepare(here, scope, applied(items))
    told = any(item.writes for item in items)
    if not flags["json_"]:
        tell(items, found, prepared)
    wanted = flags["apply"] or (
        told
        and not flags["json_"]
        and on_terminal()
        and not here.environ.get("KAGE_AGENT")
        and ask(f"Write this to {prepared.file}?")
    )
    if wanted and told:
        write(here, prepared, [item.name for item in items if item.writes])
    if flags["json_"]:
        as_json(_as_data(items, found, prepared, written=wanted and told))
    elif told:
        print(f"written to {prepared.file}" if wanted else "nothing was written; --apply writes it")
    fine = told or any(item.act == "same" for item in items)
    raise click.exceptions.Exit(0 if fine or not (items or failed) else 1)


def _wishes(flags: Mapping[str, Any]) -> Wishes:
    names: dict[str, str] = {}
    for pair in flags["rename"]:
        old, sign, new = pair.partition("=")
        if not sign or bad_name(new):
            raise UsageError(
                f"--rename takes OLD=NEW, and {visible(new or pair, single_line=True)!r} "
                f"{bad_name(new) if sign else 'has no ='}"
            )
        names[old] = new
    return Wishes(
        only=frozenset(flags["only"]),
        names=names,
        conflict=flags["on_conflict"],
        variables=flags["to_variables"],
        powers=flags["with_powers"],
    )


def sources(
    here: Ground, path: str, format_name: str | None, scope: Scope, *, quiet: bool = False
) -> tuple[list[Found], bool]:
    """Read the files that are meant; gives also whether one of the known places failed.

    Args:
        path: A file, or "auto" for the places other hosts are known to use.
        format_name: Whose file it is; None: its content tells.
        scope: Whose places "auto" looks at: the person's, or the project's.
        quiet: Say nothing when there are none.

    Raises:
        ConfigError: the named file cannot be read.
        UsageError: no format fits it.
    """
    around = Surroundings(
        home=Path(here.environ.get("HOME") or Path.home()), workspace=here.workspace
    )
    if path != "auto":
        file = Path(path).expanduser()
        try:
            return [read(file, around, format_name=format_name or "")], False
        except Unreadable as error:
            raise ConfigError((error.fault,)) from error
    found: list[Found] = []
    failed = False
    for file, kind in known_places(around, project=scope == "project"):
        if format_name not in (None, kind.name) or file == here.workspace / ".mcp.json":
            continue
        try:
            one = read(file, around, format_name=kind.name)
        except Unreadable as error:
            failed = True
            say(str(error.fault))
            continue
        if one.servers:
            found.append(one)
    if not found and not quiet:
        places = "the project" if scope == "project" else "your home folder"
        say(f"no servers of other hosts in {places}; name a file: kage mcp import PATH")
    return found, failed


def plan(
    here: Ground, scope: Scope, found: Sequence[Found], wishes: Wishes | None = None
) -> list[Item]:
    """Decide about every entry.

    Raises:
        UsageError: ``--only`` names none.
    """
    wishes = wishes or Wishes()
    there: dict[str, Any] = dict(
        preview(file_of(here, scope), lambda text: None).get(("mcp", "servers"), {})
    )
    items: list[Item] = []
    for source in found:
        for one in source.servers:
            if wishes.only and one.name not in wishes.only:
                continue
            item = _item(source, one if wishes.powers else without_powers(one), there, wishes)
            if item.writes:
                there[item.name] = item.table
            items.append(item)
    missing = wishes.only - {item.foreign.name for item in items}
    if missing:
        known = sorted({one.name for source in found for one in source.servers})
        raise UsageError(
            f"There is no server {min(missing)!r} to import", fix=f"There are {', '.join(known)}"
        )
    return items


def _item(source: Found, one: Foreign, there: Mapping[str, Any], wishes: Wishes) -> Item:
    name = wishes.names.get(one.name, one.name)
    item = Item(source=source, foreign=one, name=name, act="add", table=dict(one.table))
    if one.problem and not (name != one.name and one.problem == f"it {bad_name(one.name)}"):
        item.act, item.reason = "bad", one.problem
        if bad_name(one.name) and (better := better_name(one.name)):
            item.reason += f"; --rename {shlex.quote(f'{one.name}={better}')} gives it another"
        return item
    if wishes.variables:
        item.table = without(item.table, literals(name, item.table))
    if name not in there:
        return item
    if there[name] == item.table:
        item.act, item.reason = "same", "is there already, just so"
    elif wishes.conflict == "replace":
        item.act, item.reason = "replace", "takes the place of the entry of that name"
    elif wishes.conflict == "rename":
        item.name = _free(name, there)
        item.reason = f"is called {item.name} here: {name} is taken"
    else:
        item.act, item.reason = "skip", "the name is taken; --on-conflict rename or replace"
    return item


def _free(name: str, there: Mapping[str, Any]) -> str:
    number = 2
    while f"{name[:28]}-{number}" in there:
        number += 1
    return f"{name[:28]}-{number}"


def applied(items: Sequence[Item]) -> Edit:
    """Give the change that writes what was decided."""

    def edit(text: TomlText) -> None:
        for item in items:
            if item.writes:
                text.put(("mcp", "servers", item.name), item.table)

    return edit


def tell(items: Sequence[Item], found: Sequence[Found], prepared: Prepared) -> None:
    """Print what becomes of every entry, and the change."""
    for source in found:
        print(visible(f"{source.format.title}, {source.file}:", single_line=True))
        for note in source.notes:
            print(f"    {visible(note, single_line=True)}")
        for item in items:
            if item.source is not source:
                continue
            reason = f": {item.reason}" if item.reason else ""
            line = f"{_MARKS[item.act]} {item.foreign.name}{reason}"
            print(f"  {visible(line, single_line=True)}")
            for note in item.foreign.notes:
                print(f"      {visible(note, single_line=True)}")
    if prepared.draft.changed:
        print(f"\n{safe_diff(prepared.draft)}")
    where = ", ".join(
        f"{item.name}: {one.where}"
        for item in items
        if item.writes
        for one in literals(item.name, item.table)
    )
    if where:
        say(f"secrets in plain text ({where}); --to-variables writes ${{NAME}} instead")


def _as_data(
    items: Sequence[Item], found: Sequence[Found], prepared: Prepared, *, written: bool
) -> dict[str, Any]:
    return {
        "file": str(prepared.file),
        "scope": prepared.scope,
        "written": written,
        "sources": [
            {"file": str(one.file), "format": one.format.name, "notes": list(one.notes)}
            for one in found
        ],
        "servers": [
            {
                "source": str(item.source.file),
                "line": item.foreign.line,
                "found": item.foreign.name,
                "name": item.name,
                "act": item.act,
                "reason": item.reason,
                "notes": list(item.foreign.notes),
                "entry": shown(item.table, literals(item.name, item.table)),
            }
            for item in items
        ],
    }


@click.command(
    epilog=examples(
        "kage mcp export > mcp.json",
        "kage mcp export github filesystem --format vscode > .vscode/mcp.json",
        "kage mcp export --with-secrets | ssh other kage mcp import /dev/stdin --apply",
    ),
)
@click.argument("names", nargs=-1, metavar="[NAME…]", shell_complete=complete_server)
@click.option(
    "--format",
    "shape",
    type=click.Choice(["mcpServers", "vscode", "kage"]),
    default="mcpServers",
    show_default=True,
    help="The shape most hosts read, VS Code's, or kage's own TOML.",
)
@click.option("--with-secrets", is_flag=True, help="Print secrets, too; else ${NAME} stands there.")
@click.pass_obj
def export(options: Options, names: tuple[str, ...], shape: str, with_secrets: bool) -> None:
    """Print your servers the way other hosts read them."""
    from kage.cli.servers import one
    from kage.config.export import TOPS, exported, written

    here = ground(options)
    if with_secrets:
        refuse_agent(here.environ, "mcp export --with-secrets")
    specs = [one(here, name) for name in names] or list(here.settings.servers.values())
    found: dict[str, Any] = {}
    for spec in specs:
        entry = written(spec)
        secrets = () if with_secrets else literals(spec.name, entry)
        for secret in secrets:
            say(f"{spec.name}: {secret.where} is printed as ${{{secret.variable}}}")
        found[spec.name] = without(entry, secrets)
        if shape != "kage":
            found[spec.name] = exported(spec, found[spec.name])
    if shape == "kage":
        text = TomlText(Path("config.toml"), "")
        for name, entry in found.items():
            text.put(("mcp", "servers", name), entry)
        sys.stdout.write(text.text)
    else:
        print(json.dumps({TOPS[shape]: found}, indent=2, ensure_ascii=False, default=str))
