"""The ``kage`` command: the TUI, print mode, and one lazily loaded file per command group."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable

from kage import __version__

# Objects made before the cyclic collector looks for garbage. Starting makes some 300,000 that all
# stay; with the default of 700 a sixth of the start is spent on looking at them again and again.
COLLECT_AFTER = 50_000


def main() -> None:
    """Run ``kage`` with the arguments of this process; never shows a traceback."""
    arguments = sys.argv[1:]
    if sys.platform == "win32":
        sys.exit("kage: Windows is not supported; it runs on Linux and macOS (and in WSL)")
    if arguments in (["--version"], ["-V"]):  # before anything is imported
        print(f"kage {__version__}")
        return
    gc.set_threshold(COLLECT_AFTER)
    if arguments[:2] == ["mcp", "serve"]:  # without click, which costs more than the start itself
        from kage.cli.serve import main as serve

        sys.exit(serve(arguments[2:]))
    chat = not arguments and "_KAGE_COMPLETE" not in os.environ  # what a shell's tab key sets
    code = guarded(_chat if chat else lambda: _command(arguments))
    gc.freeze()  # or the collector goes through every library once more before the process ends
    sys.exit(code)


def _command(arguments: list[str]) -> int:
    from kage.cli.commands import run

    _log()
    return run(arguments)


def _chat() -> int:  # the chat itself needs no command line parser
    from kage.cli.ground import Options
    from kage.cli.run import screen

    _log()
    return screen(Options())


def _log() -> None:
    if os.environ.get("KAGE_LOG"):
        from kage.cli.logs import start
        from kage.config.paths import Paths

        start(os.environ, Paths.from_environ(os.environ).data)


def guarded(command: Callable[[], int]) -> int:
    """Run ``command`` and give its exit code; an error is told on stderr."""
    from kage.core.errors import ConfigError, KageError, UsageError

    try:
        return command()
    except KeyboardInterrupt:
        return 130
    except KageError as error:
        from kage.cli.output import complain

        complain(error)
        return 2 if isinstance(error, ConfigError | UsageError) else 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
