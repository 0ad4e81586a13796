"""``kage mcp remove | enable | disable``: entries that are there already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from kage.cli.change import (
    SCOPES,
    Edit,
    Scope,
    ask,
    dry_option,
    file_of,
    finish,
    json_option,
    mine,
    on_terminal,
    prepare,
    scope_option,
)
from kage.cli.complete import complete_server
from kage.cli.ground import Ground, Options
from kage.cli.output import examples
from kage.config.edit import TomlText
from kage.config.project import PROJECT_JSON
from kage.config.rewrite import preview
from kage.core.errors import UsageError


@click.command(epilog=examples("kage mcp remove github", "kage mcp rm github --scope project"))
@click.argument("name", shell_complete=complete_server)
@scope_option
@dry_option
@json_option
@click.pass_obj
def remove(options: Options, /, name: str, **flags: Any) -> None:
    """Take the server NAME out of the file it stands in."""
    here = mine(options, "mcp remove")
    scope = _scope_of(here, name, flags["scope"])

    def edit(text: TomlText) -> None:
        text.remove(("mcp", "servers", name))

    finish(here, prepare(here, scope, edit), name, flags)


def _switch(name: str, *, on: bool) -> Edit:
    path = ("mcp", "servers", name)

    def edit(text: TomlText) -> None:
        entry = text.get(path, {})
        if "enabled" in entry:
            text.set((*path, "enabled"), on)
            text.remove((*path, "disabled"))
        elif not on:
            text.set((*path, "disabled"), True)
        else:
            text.remove((*path, "disabled"))

    return edit


@click.command(epilog=examples("kage mcp enable github", "kage mcp enable github --dry-run"))
@click.argument("name", shell_complete=complete_server)
@scope_option
@dry_option
@json_option
@click.pass_obj
def enable(options: Options, /, name: str, **flags: Any) -> None:
    """Let the server NAME start."""
    _turn(mine(options, "mcp enable"), name, flags, on=True)


@click.command(epilog=examples("kage mcp disable github", "kage mcp disable github --json"))
@click.argument("name", shell_complete=complete_server)
@scope_option
@dry_option
@json_option
@click.pass_obj
def disable(options: Options, /, name: str, **flags: Any) -> None:
    """Keep the entry of the server NAME, but do not start it."""
    _turn(mine(options, "mcp disable"), name, flags, on=False)


def _turn(here: Ground, name: str, flags: Mapping[str, Any], *, on: bool) -> None:
    scope = _scope_of(here, name, flags["scope"])
    finish(here, prepare(here, scope, _switch(name, on=on)), name, flags)


def _scope_of(here: Ground, name: str, wanted: str | None) -> Scope:
    """Say in which file the entry stands; asks when it is in more than one.

    Raises:
        UsageError: it is in none, or in several and nobody can be asked.
    """
    places: dict[Scope, str] = {}
    for scope in SCOPES:
        text = preview(file_of(here, scope), lambda text: None)
        if text.get(("mcp", "servers", name)) is not None:
            places[scope] = f"{text.file}:{text.line(('mcp', 'servers', name))}"
    fitting = [scope for scope in places if wanted in (None, scope)]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise _nowhere(here, name, places)
    if on_terminal():
        for scope in fitting:
            if ask(f"{name} stands in several files. The one in {places[scope]}?"):
                return scope
        raise UsageError("Nothing was changed")
    both = " and ".join(places.values())
    raise UsageError(f"{name} stands in {both}", fix="Say which: --scope user or --scope project")


def _nowhere(here: Ground, name: str, places: Mapping[Scope, str]) -> UsageError:
    shared = here.workspace / PROJECT_JSON
    for entry in here.loaded.entries:
        if entry.spec.name == name and entry.spec.place and entry.spec.place.file == shared:
            return UsageError(
                f"{name} stands in {entry.spec.place}, which other programs share",
                fix="Change it there by hand.",
            )
    if places:
        return UsageError(f"{name} stands in {', '.join(places.values())} only")
    from kage.cli.servers import one

    one(here, name)  # names the nearest when there is none at all
    return UsageError(f"{name} stands in no file kage may change here")
