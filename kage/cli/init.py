"""``kage init``: a commented config.toml to start from, with the servers other hosts have."""

from __future__ import annotations

from pathlib import Path

import click

from kage.cli.change import SCOPES, Scope, ask, file_of, on_terminal, say
from kage.cli.ground import Ground, Options, ground, refuse_agent
from kage.cli.output import as_json, examples
from kage.core.errors import UsageError

STARTER = """\
# kage's settings. Everything here is optional; take the "#" away from what you want to change.
# `kage config check` finds mistakes, `kage init --full` prints every key there is.

# Which model answers. Without this kage looks for ANTHROPIC_API_KEY, then OPENAI_API_KEY, then
# for a model server on this machine.
#model = "anthropic:claude-sonnet-4-6"

# A model server of your own. Keys stay in variables: name the variable, never write the key here.
#[providers.local]
#kind = "openai"
#base_url = "http://127.0.0.1:11434/v1"
#models = ["qwen3:8b"]

# MCP servers, one table each. `kage mcp add` writes them, `kage mcp import` takes over those of
# other hosts, `kage mcp test NAME` tries one.
#[mcp.servers.filesystem]
#command = "npx"
#args = ["-y", "@modelcontextprotocol/server-filesystem", "."]

# What may run without a question, what asks, what never runs. Every MCP tool asks.
#[permissions.tools.bash]
#allow = ["git status *", "git diff *"]
#ask = ["git push *"]
#deny = ["rm -rf *"]
"""
PROJECT_STARTER = """\
# kage's settings of this project, for everybody who works in it. Each server counts only once a
# person trusts it (`kage mcp trust NAME`); permissions here can only be stricter.

#[mcp.servers.docs]
#command = "npx"
#args = ["-y", "docs-mcp"]

#[permissions.tools.bash]
#deny = ["git push *"]
"""


@click.command(
    name="init",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "kage init                     a config.toml to start from",
        "kage init --yes               and the servers other hosts have",
        "kage init --scope project     a .kage/config.toml for this project",
        "kage init --full              print every key with its default",
    ),
)
@click.option("--scope", type=click.Choice(SCOPES), default="user", help="Whose file.")
@click.option("--yes", is_flag=True, help="Take over the servers other hosts have, too.")
@click.option("--full", is_flag=True, help="Print every key there is; write nothing.")
@click.option("--json", "json_", is_flag=True, help="Print JSON.")
@click.pass_obj
def group(options: Options, scope: Scope, yes: bool, full: bool, json_: bool) -> None:
    """Write a commented config.toml, and say what comes next. Never overwrites one."""
    if full:
        from kage.config.example import text

        print(text(), end="")
        return
    here = ground(options)
    refuse_agent(here.environ, "init")
    file = file_of(here, scope)
    if file.exists() or file.is_symlink():
        raise UsageError(
            f"{file} is there already and stays as it is",
            fix="`kage config check` judges it; `kage init --full` prints every key.",
        )
    _write(file, STARTER if scope == "user" else PROJECT_STARTER)
    taken = _take_over(ground(options), scope, yes=yes, quiet=json_)
    if json_:
        as_json({"file": str(file), "servers": taken})
        return
    print(f"written: {file}")
    print("\nNext:")
    for step in _steps(here, taken):
        print(f"  {step}")


def _write(file: Path, text: str) -> None:
    """Make the file; it must not be there."""
    from kage.core.errors import KageError

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(file, "x", encoding="utf-8") as made:
            file.chmod(0o600)
            made.write(text)
    except OSError as error:
        why = error.strerror or str(error)
        raise KageError(f"{file} cannot be written", why=why) from error


def _take_over(here: Ground, scope: Scope, *, yes: bool, quiet: bool) -> list[str]:
    """Import what other hosts have, when the person wants it; gives the names."""
    from kage.cli.change import prepare, write
    from kage.cli.exchange import applied, plan, sources, tell

    found = sources(here, "auto", None, scope, quiet=True)[0]
    items = plan(here, scope, found)
    names = [item.name for item in items if item.writes]
    if not names:
        return []
    prepared = prepare(here, scope, applied(items))
    if not quiet:
        tell(items, found, prepared)
    if yes or (not quiet and on_terminal() and ask(f"Take over {len(names)} of them?")):
        write(here, prepared, names)
        return names
    say(f"{len(names)} servers of other hosts were left: kage mcp import")
    return []


def _steps(here: Ground, taken: list[str]) -> list[str]:
    steps = []
    if not here.settings.model and not any(
        here.environ.get(name) for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
    ):
        steps.append("export ANTHROPIC_API_KEY=…     or set `model` in the file")
    if taken:
        steps.append(f"kage mcp test {taken[0]}")
    else:
        steps.append("kage mcp add filesystem -- npx -y @modelcontextprotocol/server-filesystem .")
    return [*steps, "kage doctor", "kage"]
