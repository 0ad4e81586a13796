"""Start kage for a person (the TUI) or for a script (``-p``)."""

from __future__ import annotations

import asyncio
import importlib
import select
import sys
from typing import TYPE_CHECKING

from kage.cli.ground import Options, ground, refuse_agent
from kage.core.errors import UsageError

if TYPE_CHECKING:
    from kage.agent.host import Host

MAX_STDIN = 16 << 20  # bytes of a prompt
SILENT_STDIN = 3.0  # seconds without a byte, after which a prompt on the command line is enough


def screen(options: Options) -> int:
    """Run the TUI; gives the exit code.

    Raises:
        UsageError: there is no terminal, or the agent itself asks.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "There is no terminal here", fix='Without one, ask with -p: kage -p "your question"'
        )
    here = ground(options, settled=False)  # before the first frame; ``build`` does it
    refuse_agent(here.environ, "")
    from kage.tui.app import KageApp
    from kage.tui.run import run

    def host() -> Host:
        from kage.cli.wiring import build  # after the first frame

        return build(here, interactive=True).engine

    app = KageApp(
        host,
        keys=here.settings.keys,
        theme=here.settings.theme,
        workspace=here.workspace,
        prepare=_prepare,
    )
    log_file = here.paths.data / "kage.log"
    return run(app, log_file=log_file, redirect=not options.inherit_stderr)


def _prepare() -> None:
    """Load what the host, and hearing it, need."""
    for name in ("kage.cli.wiring", "kage.tui.controllers.hearing"):
        importlib.import_module(name)


def printed(options: Options, prompt: str, *, as_json: bool) -> int:
    """Run one prompt without a screen; gives the exit code.

    Raises:
        UsageError: there is no prompt, or the agent itself asks.
        ConfigError: a file has mistakes.
    """
    here = ground(options).sound()
    refuse_agent(here.environ, "-p")
    text, piped = _with_stdin(prompt)
    from kage.cli.wiring import build
    from kage.plain.text import run

    async def work() -> int:
        house = build(here, interactive=False)
        return await run(
            house.engine,
            text,
            piped=piped,
            as_json=as_json,
            redact=here.redact,
            settled=house.ready,
            required=house.required,
        )

    return asyncio.run(work())


def _with_stdin(prompt: str) -> tuple[str, str]:
    """Give the prompt and what was piped in beside it; alone, what was piped in is the prompt."""
    words = prompt.strip()
    piped = _piped(bool(words))
    if not words and not piped:
        raise UsageError("There is no prompt", fix='Give one: kage -p "your question"')
    return (words, piped) if words else (piped, "")


def _piped(has_prompt: bool) -> str:
    """Read stdin to its end; with a prompt at hand a silent pipe is not waited for."""
    try:
        if sys.stdin is None or sys.stdin.isatty():
            return ""
        if has_prompt and not select.select([sys.stdin], [], [], SILENT_STDIN)[0]:
            print("kage: nothing came on stdin; going on without it", file=sys.stderr)
            return ""
        data = sys.stdin.buffer.read(MAX_STDIN + 1)
    except (OSError, ValueError):  # closed, or nothing one can wait for
        return ""
    if len(data) > MAX_STDIN:
        raise UsageError("The prompt on stdin is too long", fix="Give at most 16 MiB.")
    return data.decode("utf-8", "replace").strip()
