"""``kage log export``: the decision log as JSON lines or as a table other programs read."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TextIO

import click

from kage.cli.ground import Options, ground
from kage.cli.output import examples
from kage.core.errors import KageError
from kage.core.sanitise import visible
from kage.permissions.decisions.cases import Case, cases
from kage.permissions.decisions.query import Query, parse_query

_TEXTS = ("time", "kind", "id", "session", "workspace", "call", "server", "tool", "verdict")
_MORE = ("who", "rule", "reason", "act", "action", "arguments")
COLUMNS = ("n", *_TEXTS, *_MORE, "outcome", "seconds")
_FORMULA = ("=", "+", "-", "@")  # what a spreadsheet would work out


@click.command(
    epilog=examples(
        "kage log export -o decisions.jsonl",
        "kage log export --format csv since=30d -o last-month.csv",
    )
)
@click.argument("query", nargs=-1)
@click.option("--format", "kind", type=click.Choice(["jsonl", "csv"]), default="jsonl")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file, which must not exist yet.",
)
@click.pass_obj
def export(options: Options, query: tuple[str, ...], kind: str, output: Path | None) -> None:
    """Write all records that fit, the oldest first, each with how its call ended.

    Times are UTC. What secrets were is not in the log; what else arguments hold is.
    """
    folder, wanted = ground(options, settled=False).paths.data / "decisions", parse_query(query)
    try:
        if output is None:
            _write(sys.stdout, folder, wanted, kind)
            return
        with output.open("x", encoding="utf-8", newline="") as stream:
            output.chmod(0o600)
            count = _write(stream, folder, wanted, kind)
    except BrokenPipeError:
        raise
    except OSError as error:
        what = "The decision log cannot be exported"
        place = error.filename or output or folder
        raise KageError(what, why=f"{place}: {error.strerror or error}") from error
    print(f"{count:,} records in {output}", file=sys.stderr)


def _write(stream: TextIO, folder: Path, wanted: Query, kind: str) -> int:
    count = 0
    table = csv.writer(stream, lineterminator="\n")
    if kind == "csv":
        table.writerow(COLUMNS)
    for case in cases(folder, wanted.fits, since=wanted.since):
        count += 1
        if kind == "csv":
            table.writerow(_row(case))
        else:
            stream.write(json.dumps(case.plain()) + "\n")
    return count


def _row(case: Case) -> list[object]:
    shown = {**case.fields, "outcome": case.outcome, "seconds": case.seconds}
    return [_cell(shown.get(name)) for name in COLUMNS]


def _cell(value: object) -> object:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = visible(text, single_line=True)
    return f"'{text}" if text.startswith(_FORMULA) else text
