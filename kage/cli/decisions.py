"""``kage log …``: ask the decision log what was decided, by whom and why; prove it, export it."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from kage.cli.caseprint import details, heading, line
from kage.cli.evidence import suggest
from kage.cli.exporting import export
from kage.cli.ground import Options, ground
from kage.cli.output import as_json, examples
from kage.core.errors import KageError, UsageError
from kage.core.sanitise import visible
from kage.permissions.decisions.cases import Case, cases, newest
from kage.permissions.decisions.explain import explain, granting
from kage.permissions.decisions.proof import Noted, prove
from kage.permissions.decisions.query import FIELDS, Query, parse_query
from kage.permissions.decisions.tail import Tail

FOLDER = "decisions"
_POLL = 0.5  # seconds between two looks of --follow
_LISTED = 20  # problems that are printed
_LEAST = 4  # characters of the beginning of an id
_JSON = click.option("--json", "json_", is_flag=True, help="Print JSON.")


class _Asking(click.Group):
    """A group whose first word may as well be a query: then it lists."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(
    name="log",
    cls=_Asking,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "kage log                                          the last decisions",
        "kage log 'server=github verdict=denied since=7d'  those that fit",
        "kage log why d1m7x                                why a call ran or did not",
        "kage log suggest                                  rules that would save questions",
        "kage log verify                                   prove that nothing was changed",
    ),
)
def group() -> None:
    """The decision log: every call that was allowed or refused, by whom, why, and how it ended."""


@group.command(
    "list",
    epilog=examples(
        "kage log tool=bash outcome!=ok",
        "kage log 'who=person text~\"rm -rf\"' -n 0 --json | jq .arguments",
        f"Fields: {', '.join(FIELDS)}",
    ),
)
@click.argument("query", nargs=-1)
@click.option("-n", "most", type=click.IntRange(min=0), default=50, help="How many, 0 = all.  [50]")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is decided from now on.")
@click.option("--json", "json_", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
def list_(options: Options, query: tuple[str, ...], most: int, follow: bool, json_: bool) -> None:
    """Show decisions, the newest last.

    QUERY is field=value, field!=value or field~text, several of them, or a word to look for.
    """
    folder, wanted = folder_of(options), parse_query(query)
    tail = Tail(folder) if follow else None
    last = 0
    for case in _read(cases(folder, wanted.fits, most=most, since=wanted.since)):
        if not json_ and not last:
            print(heading())
        _print(case, json_=json_)
        last = max(last, _number(case))
    if tail is not None:
        _follow(tail, wanted, last, json_=json_)
    elif not last and not json_:
        print("Nothing in the decision log fits" if query else "No decisions yet", file=sys.stderr)


@group.command(epilog=examples("kage log show d1m7x", "kage log show 118 --json"))
@click.argument("id_", metavar="ID")
@_JSON
@click.pass_obj
def show(options: Options, id_: str, json_: bool) -> None:
    """Print everything one record says; ID is that of the decision or call, or a number."""
    case = _one(folder_of(options), id_)
    if json_:
        as_json(case.plain())
        return
    for name, text in details(case):
        print(f"{name}: {text}")


@group.command(epilog=examples("kage log why d1m7x", "kage log why toolu_01A2b"))
@click.argument("id_", metavar="CALL")
@_JSON
@click.pass_obj
def why(options: Options, id_: str, json_: bool) -> None:
    """Explain why a call ran or did not: who decided, by what, and how it ended."""
    folder = folder_of(options)
    case = _one(folder, id_)
    source = None
    if case.text("who") == "grant":
        given = newest(folder, lambda other: granting(case, other))
        source = next(_read(given), None)
    told = explain(case, source=source)
    if json_:
        as_json({"id": case.text("id"), "why": list(told), "record": case.plain()})
        return
    print(line(case))
    for sentence in told:
        print(visible(f"  {sentence}", single_line=False))


@group.command(epilog=examples("kage log verify", "kage log verify --noted 1204:9f86d081884c7d65"))
@click.option("--noted", metavar="COUNT:HASH", help="What an earlier verify printed must hold.")
@_JSON
@click.pass_obj
def verify(options: Options, noted: str | None, json_: bool) -> None:
    """Prove the log: edited, deleted, moved and added records are named. Exit code 1 then.

    A log that was written anew as a whole shows only against a count and hash noted elsewhere.
    """
    folder = folder_of(options)
    try:
        proof = prove(folder, _noted(noted))
    except OSError as error:
        raise _unreadable(folder, error) from error
    if json_:
        as_json(
            {
                "whole": not proof.problems,
                "count": proof.count,
                "hash": proof.digest,
                "problems": [_where(one.file, one.line, one.what) for one in proof.problems],
                "gaps": [_where(one.file, one.line, one.what) for one in proof.gaps],
                "unfinished": str(proof.unfinished or ""),
            }
        )
        sys.exit(1 if proof.problems else 0)
    for problem in proof.problems[:_LISTED]:
        print(visible(str(problem), single_line=True))
    if len(proof.problems) > _LISTED:
        print(f"and {len(proof.problems) - _LISTED} more")
    for gap in proof.gaps:
        print(visible(f"noted by kage: {gap}", single_line=True))
    if proof.unfinished is not None:
        print(visible(f"no alarm: {proof.unfinished}", single_line=True))
    if proof.problems:
        print("The decision log is not what kage wrote; keep a copy of it", file=sys.stderr)
        sys.exit(1)
    print(f"The decision log is whole: {proof.count:,} records")
    if proof.count:
        print(f"To prove it again later, note {proof.count}:{proof.digest[:32]}")


for verb in (suggest, export):
    group.add_command(verb)


def folder_of(options: Options) -> Path:
    """Give the folder of the log."""
    return ground(options, settled=False).paths.data / FOLDER


def _read(found: Iterator[Case]) -> Iterator[Case]:
    """Pass cases on, with a file that cannot be read told as an error of kage."""
    try:
        yield from found
    except OSError as error:
        raise _unreadable(Path(FOLDER), error) from error


def _unreadable(folder: Path, error: OSError) -> KageError:
    place = error.filename or folder
    return KageError("The decision log cannot be read", why=f"{place}: {error.strerror or error}")


def _print(case: Case, *, json_: bool) -> None:
    if json_:
        print(json.dumps(case.plain()), flush=True)
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
        print(line(case, width=width), flush=True)


def _follow(tail: Tail, wanted: Query, last: int, *, json_: bool) -> None:
    if not json_ and not last:
        print(heading(), flush=True)
    try:
        while True:
            for case in _read(tail.fresh()):
                seen = _number(case) <= last and case.ended is None
                if not seen and wanted.fits(case):
                    _print(case, json_=json_)
            time.sleep(_POLL)
    except KeyboardInterrupt:
        sys.exit(130)


def _number(case: Case) -> int:
    number = case.fields.get("n")
    return number if isinstance(number, int) else 0


def _one(folder: Path, name: str) -> Case:
    """Find a record by id, call, number or the beginning of an id.

    Raises:
        UsageError: there is none, or several begin like that.
    """
    near: dict[str, Case] = {}
    number = name.removeprefix("#")
    for case in _read(newest(folder)):
        ids = (case.text("id"), case.text("call"))
        if name in ids or str(case.fields.get("n")) == number:
            return case
        if len(name) >= _LEAST and any(one.startswith(name) for one in ids):
            near.setdefault(case.text("id"), case)
    shown = visible(name, single_line=True)
    if len(near) == 1:
        return next(iter(near.values()))
    if near:
        few = ", ".join(list(near)[:5])
        raise UsageError(f"{len(near)} records begin with {shown!r}", fix=f"Write more: {few}")
    raise UsageError(
        f"The decision log has no record {shown!r}", fix="`kage log` shows the last ones."
    )


def _noted(text: str | None) -> Noted | None:
    if text is None:
        return None
    count, _, digest = text.partition(":")
    digest = digest.lower()
    if not count.isdecimal() or len(digest) < 8 or digest.strip("0123456789abcdef"):
        raise UsageError(
            f"{visible(text, single_line=True)!r} is no COUNT:HASH",
            fix="Give what `kage log verify` printed, like 1204:9f86d081884c7d65",
        )
    return Noted(count=int(count), digest=digest)


def _where(file: Path, line: int, what: str) -> dict[str, object]:
    return {"file": str(file), "line": line, "what": what}
