"""``kage config …``: where the configuration is, whether it is sound, and single keys of it."""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, cast

import click

from kage.cli.ground import Options, ground, refuse_agent
from kage.cli.output import as_json, examples
from kage.core.errors import ConfigError, UsageError
from kage.core.sanitise import visible

_JSON = click.option("--json", "json_", is_flag=True, help="Print JSON.")


@click.group(
    name="config",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "kage config check",
        "kage config path",
        "kage config set mcp.default_timeout 45s",
        "kage config get model",
    ),
)
def group() -> None:
    """Where the configuration is, whether it is sound, and single keys of it."""


@group.command(epilog=examples("kage config check", "kage --config other.toml config check"))
@_JSON
@click.pass_obj
def check(options: Options, json_: bool) -> None:
    """Read every file and name each mistake; exit code 2 when there is one."""
    from kage.cli.wiring import rules_of

    here = ground(options)
    faults = (*here.loaded.faults, *rules_of(here).faults)
    if json_:
        as_json(
            [
                {
                    "file": str(fault.file),
                    "line": fault.line,
                    "key": fault.key,
                    "what": fault.what,
                    "expected": fault.expected,
                    "got": fault.got,
                }
                for fault in faults
            ]
        )
        if faults:
            raise click.exceptions.Exit(2)
        return
    for note in (*here.settings.notes, *here.loaded.advice):
        print(visible(note))
    if faults:
        raise ConfigError(faults)
    for path in here.loaded.files:
        print(f"{path}: sound")
    if not here.loaded.files:
        print(f"No configuration yet; kage would read {here.paths.config / 'config.toml'}")


@group.command(
    epilog=examples("kage config path", '$EDITOR "$(kage config path --json | jq -r .config)"')
)
@_JSON
@click.pass_obj
def path(options: Options, json_: bool) -> None:
    """Show the folders kage uses."""
    paths = ground(options).paths
    places = {
        "config": str(paths.config / "config.toml"),
        "data": str(paths.data),
        "cache": str(paths.cache),
        "runtime": str(paths.runtime),
    }
    if json_:
        as_json(places)
        return
    for name, place in places.items():
        print(f"{name:8} {place}")


@group.command(
    "set",
    context_settings={"ignore_unknown_options": True},
    epilog=examples(
        "kage config set mcp.enabled true",
        "kage config set mcp.servers.github.tool_timeout 2m",
        "kage config set permissions.tools.bash.allow '[\"git status *\"]'",
        "kage config set limits.max_turns --unset",
    ),
)
@click.argument("key")
@click.argument("value", required=False)
@click.option("--unset", is_flag=True, help="Take the key out, so that its default holds.")
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    help="Your own config.toml, or the project's .kage/config.toml.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Show it, write nothing.")
@_JSON
@click.pass_obj
def set_(options: Options, /, key: str, value: str | None, **flags: Any) -> None:
    """Set KEY to VALUE; the rest of the file, comments included, stays as it is.

    VALUE is TOML where KEY takes a number, a flag or a list, else text. Nothing is written that
    `kage config check` would refuse.
    """
    from kage.cli.change import Scope, prepare, safe_diff, say, write
    from kage.config.edit import TomlText

    here = ground(options)
    refuse_agent(here.environ, "config set")
    where = key_path(key)
    if (value is None) != bool(flags["unset"]):
        raise UsageError("Give either a value or --unset", fix=f"kage config set {key} VALUE")
    scope = cast("Scope", flags["scope"])

    def attempt(candidate: Any) -> Any:  # Prepared, imported late
        def edit(text: TomlText) -> None:
            if value is None:
                text.remove(where)
            else:
                text.set(where, candidate)

        return prepare(here, scope, edit)

    prepared: Any = None
    first: ConfigError | None = None
    for candidate in _candidates(value):
        try:
            prepared = attempt(candidate)
            break
        except ConfigError as error:
            first = error if first is None or isinstance(candidate, str) else first
    if prepared is None:
        assert first is not None
        raise first
    draft = prepared.draft
    if not flags["dry_run"]:
        names = where[2:3] if where[:2] == ("mcp", "servers") else ()
        draft = write(here, prepared, names)
    written = draft.changed and not flags["dry_run"]
    line = draft.line(where) if draft.get(where) is not None else 0
    if flags["json_"]:
        as_json(
            {
                "key": key,
                "file": str(prepared.file),
                "line": line,
                "written": written,
                "diff": safe_diff(draft),
            }
        )
    elif flags["dry_run"]:
        print(safe_diff(draft), end="")
        say("nothing was written")
    else:
        place = f"{prepared.file}:{line}" if line else str(prepared.file)
        print(f"{key}: {place}" if written else f"{key}: nothing to change in {place}")


@group.command(
    epilog=examples("kage config get model", "kage config get mcp.servers.github --json")
)
@click.argument("key")
@_JSON
@click.pass_obj
def get(options: Options, key: str, json_: bool) -> None:
    """Print what your config.toml says for KEY; exit code 1 when it says nothing.

    Secrets in plain text are not printed.
    """
    from kage.cli.change import file_of, say
    from kage.config.edit import render
    from kage.config.rewrite import preview
    from kage.config.secrets import everywhere, hidden

    here = ground(options)
    where = key_path(key)
    text = preview(file_of(here, "user"), lambda text: None)
    found = text.get(where)
    if found is None:
        say(f"{key} is not set in {text.file}")
        raise click.exceptions.Exit(1)
    secrets = everywhere(text.data)
    if json_:
        shown = hidden(json.dumps(found, ensure_ascii=False, default=str), secrets)
        as_json(json.loads(shown))
    elif isinstance(found, Mapping):
        for name, value in _leaves(found):
            print(visible(hidden(f"{name} = {render(value)}", secrets)))
    else:
        plain = found if isinstance(found, str) else render(found)
        print(visible(hidden(f"{plain}\n", secrets).removesuffix("\n")))


def key_path(text: str) -> tuple[str, ...]:
    """Take a dotted key apart; parts with dots in them stand in quotes, as in TOML.

    Raises:
        UsageError: it is no key.
    """
    parts = [part.strip() for part in re.findall(r'"[^"]*"|\'[^\']*\'|[^.]+', text)]
    words = [part[1:-1] if part[:1] in {'"', "'"} else part for part in parts]
    if not words or not all(words) or ".." in text or text[:1] == "." or text[-1:] == ".":
        raise UsageError(
            f"{visible(text, single_line=True)!r} is no key", fix="Write it like limits.max_turns"
        )
    return tuple(words)


def _candidates(value: str | None) -> Iterator[Any]:
    """Give what ``value`` may mean: TOML first, then plain text."""
    if value is None:
        yield None
        return
    with contextlib.suppress(ValueError, RecursionError, KeyError):
        yield tomllib.loads(f"value = {value}")["value"]
    yield value


def _leaves(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    from kage.config.tables import dotted

    for key, value in table.items():
        name = f"{before}{dotted((key,))}"
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{name}.")
        else:
            yield name, value
