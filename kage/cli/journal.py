"""``kage mcp log``: what a server said last, from the files kages keep."""

from __future__ import annotations

import os
import time
from collections import deque
from pathlib import Path

import click

from kage.cli.complete import complete_server
from kage.cli.ground import Options, ground
from kage.cli.output import as_json, examples
from kage.cli.servers import one
from kage.core.errors import KageError
from kage.core.sanitise import visible
from kage.mcp.client.servers.journal import file_name

MOST = 2 << 20  # bytes of the end of a file that are looked at


@click.command(epilog=examples("kage mcp log github", "kage mcp log github -n 20 --json"))
@click.argument("name", shell_complete=complete_server)
@click.option("-n", "--lines", type=click.IntRange(1, 100_000), default=200, show_default=True)
@click.option("--json", "json_", is_flag=True, help="Print JSON.")
@click.pass_obj
def log(options: Options, name: str, lines: int, json_: bool) -> None:
    """Print the last lines the server NAME wrote to stderr in a kage that kept them.

    The chat keeps them, and so does an entry with stderr = "log"; other verbs let a server write
    to the terminal itself. Exit code 1 when there are none.
    """
    here = ground(options)
    one(here, name)
    file = _newest(here.paths.data / "journals", file_name(name))
    found = _tail(file, lines) if file is not None else []
    if file is None or not found:
        raise KageError(f"No kage has kept anything {name} wrote", fix=f"kage mcp test {name}")
    if json_:
        as_json({"file": str(file), "changed": file.stat().st_mtime, "lines": found})
        return
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(file.stat().st_mtime))
    click.echo(f"{file}, last written {when}", err=True)
    for line in found:
        print(visible(line, single_line=True))


def _newest(journals: Path, name: str) -> Path | None:
    files = [file for file in journals.glob(f"*/{name}") if file.is_file()]
    return max(files, key=lambda file: file.stat().st_mtime, default=None)


def _tail(file: Path, lines: int) -> list[str]:
    try:
        with open(file, "rb") as stream:
            start = max(0, stream.seek(0, os.SEEK_END) - MOST)
            stream.seek(start)
            text = stream.read().decode(errors="replace")
    except OSError as error:
        raise KageError(f"{file} cannot be read", why=error.strerror or str(error)) from error
    return list(deque((line for line in text.splitlines()[bool(start) :] if line), lines))
