"""``kage mcp serve``: offer kage's own tools over stdin and stdout; imports as little as it can."""

from __future__ import annotations

from kage.mcp.server import lean  # noqa: F401  # isort: skip  # first: it decides how asyncio is loaded

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from kage import __version__
from kage.cli.serve_log import ServedLog
from kage.cli.serve_rules import friction, guarding_own_files, without_held
from kage.config.load import load
from kage.config.paths import Paths, workspace_of
from kage.config.project import costs_a_server
from kage.config.schema import BUILTIN_NAMES, Settings
from kage.core.errors import ConfigError, KageError, UsageError
from kage.core.sandbox import Cage
from kage.core.sanitise import visible
from kage.core.tools import Tool
from kage.mcp.server.expose import check_root
from kage.mcp.server.service import Service

if TYPE_CHECKING:
    import argparse

READ_ONLY = ("read", "ls", "find", "grep")

_EPILOG = """\
examples (the command another agent starts):
  kage mcp serve
  kage mcp serve --root ~/src/shop --read-only
  kage mcp serve --tools read,grep --confirm

deny and ask rules of your config hold; defaults do not, since the calling host holds the person.
"""


def main(arguments: list[str], *, config_file: Path | None = None) -> int:
    """Serve until the client goes away; gives the exit code."""
    if sys.stderr is None:  # closed by whoever started this: print() would take stdout instead
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # it stays open
    flags = SimpleNamespace(root=None, tools="", read_only=False, confirm=False, config=None)
    if arguments:  # most hosts give none: the parser would cost them its import
        _parser().parse_args(arguments, flags)
    try:
        return _serve(flags, flags.config or config_file)
    except KageError as error:
        faults = error.faults if isinstance(error, ConfigError) else (f"kage: {error}",)
        for fault in faults:
            print(visible(str(fault)), file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    import argparse

    parser = argparse.ArgumentParser(
        prog="kage mcp serve",
        description="Offer kage's own tools to any MCP client over stdin and stdout.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--root", metavar="DIR", help="serve this folder (default: the workspace)")
    parser.add_argument("--tools", metavar="A,B", default="", help="only these tools")
    parser.add_argument("--read-only", action="store_true", help="only read, ls, find and grep")
    parser.add_argument(
        "--confirm",
        action="store_true",
        help="ask the client's person before each write and exec call",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="use this configuration file")
    return parser


def _serve(flags: SimpleNamespace, config_file: Path | None) -> int:
    environ = dict(os.environ)
    if environ.get("KAGE_AGENT"):  # only then: others start without what this loads
        from kage.cli.ground import refuse_agent

        refuse_agent(environ, "mcp serve")
    root = served_root(flags.root, environ)
    paths = Paths.from_environ(environ)
    loaded = load(paths=paths, workspace=root, config_file=config_file)
    faults = tuple(fault for fault in loaded.faults if not costs_a_server(fault, root))
    if faults:  # a rule that cannot be read might be one that denies
        raise ConfigError(faults)
    for fault in loaded.faults:
        print(visible(f"kage: {fault}"), file=sys.stderr)
    permissions = without_held(loaded.settings.permissions, paths.data)
    names = chosen_tools(flags.tools, read_only=flags.read_only)
    from kage.mcp.client.watchdog import Watchdog
    from kage.mcp.server.serve import serve

    watchdog = Watchdog()
    cage = _cage(loaded.settings, paths, environ)
    scratch = paths.data / "served" / str(os.getpid())

    def tools() -> tuple[Tool, ...]:
        from kage.tools import builtin  # after the handshake is answered

        return builtin.create(
            spawner=watchdog,
            environ=environ,
            names=names,
            max_output_chars=loaded.settings.limits.max_output_tokens * 4,
            cage=cage,
        )

    service = Service(
        root=root,
        scratch=scratch,
        tools=tools,
        version=__version__,
        rules=guarding_own_files(friction(permissions, root, names), paths, root),
        confirm=flags.confirm,
        log=ServedLog(paths.data / "decisions", root),
        instructions=f"File tools work inside {root}.",
    )

    async def stop() -> None:
        await watchdog.close()
        if cage is not None:
            cage.sandbox.close()
        if scratch.parent.exists():
            from kage.mcp.server.leftovers import clear

            clear(scratch.parent)

    return serve(service, on_stop=stop)


def _cage(settings: Settings, paths: Paths, environ: Mapping[str, str]) -> Cage | None:
    if settings.sandbox.bash == "none":  # the rule: nothing of it is loaded
        return None
    from kage.cli.cages import sandboxes_for, shell_cage

    return shell_cage(settings.sandbox, sandboxes_for(settings.sandbox, paths, environ))


def served_root(wanted: str | None, environ: Mapping[str, str]) -> Path:
    """Give the folder to serve, resolved.

    Raises:
        UsageError: it is no folder, or more than anybody should serve without saying so.
    """
    home = Path(environ.get("HOME") or os.path.expanduser("~"))
    if wanted == "":  # a variable that was not set
        raise UsageError("--root is empty", fix="Name a folder, or leave --root out")
    if wanted is not None:
        return check_root(Path(os.path.expanduser(wanted)), named=True, home=home)
    try:
        here = Path.cwd()
    except OSError as error:
        raise UsageError("The current folder is gone", fix="Name one with --root") from error
    return check_root(workspace_of(here), named=False, home=home)


def chosen_tools(listed: str, *, read_only: bool) -> tuple[str, ...]:
    """Give the tools to serve, in the fixed order.

    Raises:
        UsageError: a name is unknown, or nothing is left.
    """
    wanted = [name.strip() for name in listed.split(",") if name.strip()] or list(BUILTIN_NAMES)
    unknown = [name for name in wanted if name not in BUILTIN_NAMES]
    if unknown:
        raise UsageError(
            f"There is no tool {unknown[0]!r}", fix=f"Choose from {', '.join(BUILTIN_NAMES)}"
        )
    names = tuple(
        name for name in BUILTIN_NAMES if name in wanted and (not read_only or name in READ_ONLY)
    )
    if not names:
        raise UsageError("No tool is left to serve", fix="--read-only leaves read, ls, find, grep")
    return names
