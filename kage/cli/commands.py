"""The tree of commands; each group's file is imported when one of its commands is used."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

from kage import __version__
from kage.cli.ground import Options

_GROUPS = {
    "mcp": ("kage.cli.mcp", "MCP servers: add, list, test, call them; or serve kage's own tools."),
    "session": ("kage.cli.session", "Conversations on disk."),
    "log": ("kage.cli.decisions", "The decision log: ask it, prove it, export it."),
    "config": ("kage.cli.config", "Where the configuration is, whether it is sound, its keys."),
    "doctor": ("kage.cli.doctor", "Check everything kage needs, with fixes."),
    "init": ("kage.cli.init", "Write a commented config.toml to start from."),
}


class _Lazy(click.Group):
    """A group whose subcommands are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_GROUPS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _GROUPS:
            return None
        command: click.Command = importlib.import_module(_GROUPS[cmd_name][0]).group
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _GROUPS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _GROUPS and not name.startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(name, _GROUPS, n=1)
            hint = f" Did you mean {near[0]}?" if near else ' To ask something: kage -p "…"'
            ctx.fail(f"There is no command {name!r}.{hint}")
        return super().resolve_command(ctx, args)


_EPILOG = """\b
Examples:
  kage                                      chat in the terminal
  kage -p "which tests touch the cart?"     one run, result on stdout
  git diff | kage -p "review this" --json   events as JSON lines
  kage mcp serve                            offer kage's tools to another agent
"""


@click.group(
    cls=_Lazy,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_EPILOG,
)
@click.version_option(__version__, "-V", "--version", message="kage %(version)s")
@click.option(
    "-p",
    "--print",
    "prompt",
    is_flag=False,
    flag_value="",
    metavar="PROMPT",
    help="Work on PROMPT (or stdin) without a screen and print the result.",
)
@click.option("--json", "as_json", is_flag=True, help="With -p: events as JSON lines.")
@click.option(
    "--allow", multiple=True, metavar="RULE", help="Let these calls run: 'bash(git status *)'."
)
@click.option("--model", default="", metavar="PROVIDER:NAME", help="The model that answers.")
@click.option("--max-turns", type=click.IntRange(min=0), help="Turns of one run, 0 = no limit.")
@click.option("-r", "--resume", default="", metavar="ID", help="Go on with a session.")
@click.option("-c", "--continue", "latest", is_flag=True, help="Go on with the last session here.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="Use this file instead of config.toml.",
)
@click.option(
    "--mcp-config",
    multiple=True,
    metavar="FILE|JSON",
    help="More servers, from a file or inline JSON.",
)
@click.option("--strict-mcp-config", is_flag=True, help="Only the servers of --mcp-config.")
@click.option("--require-mcp", is_flag=True, help="With -p: exit 3 unless every server is up.")
@click.option("--no-mcp", is_flag=True, help="Start no server.")
@click.option("--inherit-stderr", is_flag=True, help="Let servers write to this terminal.")
@click.pass_context
def cli(
    ctx: click.Context, /, prompt: str | None, as_json: bool, latest: bool, **rest: object
) -> None:
    """kage, a bidirectional MCP host: every tool call passes your hands first."""
    options = Options.from_flags(latest=latest, **rest)
    ctx.obj = options
    if ctx.invoked_subcommand is not None:
        return
    from kage.cli import run as runs

    if prompt is None:
        if as_json:
            ctx.fail('--json goes with -p: kage -p "…" --json')
        ctx.exit(runs.screen(options))
    ctx.exit(runs.printed(options, prompt, as_json=as_json))


def run(arguments: list[str]) -> int:
    """Run the command line and give its exit code.

    Raises:
        KageError: what the command met; the caller tells it.
    """
    try:
        result = cli.main(arguments, prog_name="kage", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as stop:
        return int(stop.exit_code)
    except click.ClickException as error:
        error.show()
        return 2
    except click.Abort:
        return 130
