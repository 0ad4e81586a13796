"""``kage mcp login`` and ``kage mcp logout``: sign in to an HTTP server in a terminal, and out."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from threading import Thread
from typing import Any

import click

from kage.cli.ground import Ground, Options, ground, refuse_agent
from kage.cli.output import as_json, examples
from kage.cli.servers import one
from kage.cli.signing import logins_for
from kage.cli.trusting import desk_of
from kage.config.schema import ServerSpec
from kage.control.caller import restart, running
from kage.core.errors import KageError, UsageError
from kage.core.links import open_link
from kage.core.sanitise import visible
from kage.core.servers import ServerState
from kage.core.trust import Standing
from kage.mcp.client.oauth.logins import PERSON_TIME, Page
from kage.mcp.client.oauth.problems import Refused
from kage.mcp.client.oauth.records import Record
from kage.mcp.client.watchdog import Watchdog
from kage.plain.text import complain

_JSON = click.option("--json", "json_", is_flag=True, help="Print JSON.")


@click.command(
    name="login",
    epilog=examples(
        "kage mcp login github",
        "kage mcp login github --no-browser         open the page yourself, on any machine",
        "kage mcp login github --scope repo:write   ask for more than the server names",
    ),
)
@click.argument("name")
@click.option("--no-browser", is_flag=True, help="Only print the page's address.")
@click.option("--scope", multiple=True, metavar="SCOPE", help="Ask for this too.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1, max=3600),
    default=PERSON_TIME,
    show_default=True,
    help="Seconds for all of it.",
)
@_JSON
@click.pass_obj
def login(
    options: Options,
    /,
    name: str,
    no_browser: bool,
    scope: tuple[str, ...],
    timeout: float,
    json_: bool,
) -> None:
    """Sign in to the HTTP server NAME in the browser; kage keeps what comes of it.

    The page's address is printed first. Where the browser is on another machine, it ends at an
    address of 127.0.0.1 it cannot open: paste that address here.

    Exit code 0 when you are signed in, else 1.
    """
    here = ground(options).sound()
    refuse_agent(here.environ, "mcp login")
    spec = _trusted(here, name)
    visit = _Visit(here.environ, browser=not no_browser)
    record = asyncio.run(_login(here, spec, visit, timeout=timeout, scopes=scope))
    print(f"Signed in to {visible(record.server, single_line=True)}", file=sys.stderr)
    _wake_others(here, record)
    if json_:
        as_json(_described(record))


@click.command(name="logout", epilog=examples("kage mcp logout github"))
@click.argument("name")
@_JSON
@click.pass_obj
def logout(options: Options, /, name: str, json_: bool) -> None:
    """Forget the sign-in at the server NAME, also when its entry is gone.

    Where the server offers it, the tokens are revoked too.

    Exit code 0 when there was something to forget, else 1.
    """
    here = ground(options)
    refuse_agent(here.environ, "mcp logout")

    async def work() -> list[str]:
        return [key.url for key in await logins_for(here, complain).logout(name)]

    gone = asyncio.run(work())
    shown = visible(name, single_line=True)
    if json_:
        as_json({"server": name, "forgotten": gone})
    else:
        words = f"Signed out of {shown}" if gone else f"Nobody was signed in to {shown}"
        print(words, file=sys.stderr)
    sys.exit(0 if gone else 1)


def _trusted(here: Ground, name: str) -> ServerSpec:
    """Give the entry, if it is one kage would connect to."""
    one(here, name)
    spec = here.settings.servers.get(name)
    if spec is None or desk_of(here).standing(spec) is not Standing.TRUSTED:
        shown = visible(name, single_line=True)
        raise UsageError(f"{shown} is not trusted yet", fix=f"First: kage mcp trust {shown}")
    return spec


def _wake_others(here: Ground, record: Record) -> None:
    """Have every running kage whose server waits for this sign-in connect to it."""
    for kage in running(here.paths.runtime):
        for server in kage.servers:
            same = (server.get("name"), server.get("origin")) == (record.server, record.origin)
            idle = not server.get("protocol")  # a call that waits sees the sign-in by itself
            if not same or not idle or server.get("state") != ServerState.NEEDS_AUTH.value:
                continue
            try:
                restart(kage, record.server, fresh=False)
            except KageError as error:
                complain(f"kage {kage.pid} does not connect to it: {error}")
            else:
                print(f"kage {kage.pid} is connected to it now", file=sys.stderr)


async def _login(
    here: Ground, spec: ServerSpec, visit: _Visit, *, timeout: float, scopes: tuple[str, ...]
) -> Record:
    watchdog = Watchdog()
    try:
        logins = logins_for(here, complain, spawner=watchdog)
        target = logins.target(spec, here.workspace)
        return await logins.login(target, visit.show, timeout=timeout, scopes=scopes)
    finally:
        await watchdog.close()


class _Visit:
    """Shows the page on stderr, opens it if wanted, and takes what is pasted on stdin."""

    def __init__(self, environ: Mapping[str, str], *, browser: bool) -> None:
        self._environ = environ
        self._browser = browser
        self._page: Page | None = None

    async def show(self, page: Page) -> None:
        """Print the page's address before anything is opened."""
        first = self._page is None
        self._page = page
        print(
            f"To sign in to {visible(page.server, single_line=True)}, open this page "
            f"(on {page.host}):\n\n  {visible(page.url, single_line=True)}\n",
            file=sys.stderr,
            flush=True,
        )
        if self._browser:
            trouble = open_link(page.url, self._environ)
            print(trouble or "Your browser opens it.", file=sys.stderr)
        if first:
            hint = "Waiting. If the browser cannot come back here, paste the address it ends at."
            print(hint, file=sys.stderr, flush=True)
            self._listen()

    def _listen(self) -> None:
        """Read stdin on a thread nobody waits for: a person may never type anything."""
        loop = asyncio.get_running_loop()

        def read() -> None:
            rest = b""
            try:
                # not sys.stdin: its lock, held by a thread, would spoil the end of the program
                while data := os.read(0, 1 << 16):
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        loop.call_soon_threadsafe(self._paste, line.decode("utf-8", "replace"))
            except (OSError, RuntimeError):
                return  # there is no stdin, or the sign-in is over

        Thread(target=read, name="pasted address", daemon=True).start()

    def _paste(self, text: str) -> None:
        if self._page is None or not text.strip():
            return
        try:
            self._page.paste(text)
        except Refused as refused:
            print(f"That is not it: {refused}", file=sys.stderr, flush=True)


def _described(record: Record) -> dict[str, Any]:
    """Say what was signed in to; no token."""
    left = round(record.expires_at - time.time()) if record.expires_at else None
    return {
        "server": record.server,
        "url": record.url,
        "issuer": record.issuer,
        "scopes": record.scope.split(),
        "expires_in": left,
        "renewable": bool(record.refresh_token),
    }
