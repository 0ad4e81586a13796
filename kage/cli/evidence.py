"""``kage log suggest``: rules that would have saved questions, with what speaks for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import click

from kage.cli.caseprint import local
from kage.cli.ground import Ground, Options, ground
from kage.cli.output import as_json, examples
from kage.core.errors import KageError
from kage.core.sanitise import clip, visible
from kage.core.tools import ToolSpec
from kage.permissions.decisions.cases import newest
from kage.permissions.decisions.query import parse_query
from kage.permissions.decisions.suggest import Evidence, Suggestion, refused
from kage.permissions.rules.reading import Reading

_EXAMPLE = 100  # characters


@click.command(epilog=examples("kage log suggest", "kage log suggest tool=bash since=30d --json"))
@click.argument("query", nargs=-1)
@click.option("-n", "most", type=click.IntRange(1, 100), default=10, show_default=True)
@click.option("--json", "json_", is_flag=True, help="Print JSON.")
@click.pass_obj
def suggest(options: Options, query: tuple[str, ...], most: int, json_: bool) -> None:
    """Show rules that would have answered the most questions; changes nothing.

    Only calls you were asked about and allowed speak for a rule, one you refused speaks against
    it, and none is broader than what was seen. Paste those you want into config.toml.
    """
    here = ground(options)
    folder, wanted = here.paths.data / "decisions", parse_query(query)
    evidence = Evidence(
        specs=_own_tools(here),
        servers=[name for name, spec in here.settings.servers.items() if spec.origin == "user"],
        savable=_savable(here),
    )
    try:
        for case in newest(folder):
            if wanted.fits(case) or refused(case):  # a refusal counts whatever is asked for
                evidence.take(case)
    except OSError as error:
        why = f"{error.filename or folder}: {error.strerror or error}"
        raise KageError("The decision log cannot be read", why=why) from error
    found = evidence.suggestions()[:most]
    if json_:
        as_json([{**_plain(one), "config": _table([one])} for one in found])
        return
    if not found:
        print("No rule would have saved you more than one question.")
        return
    for one in found:
        _print(one)
    print("\nTo let such calls run without a question, put into config.toml what you want of:\n")
    for tool in dict.fromkeys(one.rule.tool for one in found):
        written = [rules for rules in here.settings.permissions.tools if rules.tool == tool]
        if written:
            print(f"# there is a table for {tool} already: {written[0].place}")
        print(visible(_table([one for one in found if one.rule.tool == tool])))


def _savable(here: Ground) -> Callable[[Reading], bool]:
    """Give the judge: would the call ask now, in a way an allow rule could answer?"""
    from kage.cli.wiring import rules_of
    from kage.permissions.decisions.log import DecisionLog
    from kage.permissions.grants import Grants
    from kage.permissions.protected import Protected
    from kage.permissions.rules.rules import Case

    rules = rules_of(here)
    log = DecisionLog(here.paths.data / "decisions")
    grants = Grants(here.paths.data / "grants.toml", log=log)

    def judge(reading: Reading) -> bool:
        protected = Protected.of(here.paths, reading.workspace)
        grant, _ = grants.find(reading, "")
        guarded = reading.guarded(protected)
        if guarded is None:
            guarded = next(
                (place for place in reading.uprooted() if protected.uproots(place)), None
            )
        case = Case(mode=rules.mode, guarded=guarded, grant=str(grant.rule) if grant else "")
        judgement = rules.judge(reading, case)
        return judgement.wish == "ask" and not judgement.every_time

    return judge


def _own_tools(here: Ground) -> dict[str, ToolSpec]:
    from kage.mcp.client.watchdog import Watchdog
    from kage.tools import builtin

    made = builtin.create(spawner=Watchdog(), environ=here.environ)  # starts nothing
    return {tool.spec.name: tool.spec for tool in made}


def _print(one: Suggestion) -> None:
    times = f"{one.saved} questions" + (f", {one.calls} different calls" if one.calls > 1 else "")
    where = f"in {one.folders} folders" if one.folders > 1 else "in one folder"
    print(visible(f"{one.rule}", single_line=True))
    print(f"  saves {times}, {where}, {_day(one.first)} to {_day(one.last)}; you refused none")
    for example in one.examples:
        print(f"  like {clip(visible(example, single_line=True), _EXAMPLE)}")


def _day(stamp: str) -> str:
    return local(stamp)[:10]


def _plain(one: Suggestion) -> dict[str, object]:
    return {
        "rule": str(one.rule),
        "saved": one.saved,
        "calls": one.calls,
        "folders": one.folders,
        "first": one.first,
        "last": one.last,
        "examples": list(one.examples),
    }


def _table(found: Iterable[Suggestion]) -> str:
    rules = [one.rule for one in found]
    patterns = json.dumps([rule.pattern or "*" for rule in rules], ensure_ascii=False)
    return f"[permissions.tools.{rules[0].tool}]\nallow = {patterns}\n"
