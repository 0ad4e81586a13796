"""``kage mcp trust``: look at what an entry would start, then let it start, or not."""

from __future__ import annotations

import sys
from typing import Any

import click

from kage.cli.complete import complete_server
from kage.cli.ground import Ground, Options, ground, refuse_agent
from kage.cli.output import as_json, examples, table
from kage.cli.trusting import TrustDesk, desk_of
from kage.core.canonical import digest
from kage.core.errors import UsageError
from kage.core.sanitise import exact, visible
from kage.core.trust import Standing, TrustAnswer, TrustQuestion
from kage.plain.text import complain

_WORDS = {
    Standing.TRUSTED: "trusted",
    Standing.NEW: "not trusted yet",
    Standing.CHANGED: "changed since it was trusted",
    Standing.HELD: "held: changed while kage was running",
    Standing.NEVER: "not wanted",
}


@click.command(
    name="trust",
    epilog=examples(
        "kage mcp trust team                      show it, then ask",
        "kage mcp trust team --show --json        only look; for scripts",
        "kage mcp trust team --yes --hash 3f9c…   exactly the entry that was shown",
        "kage mcp trust team --revoke",
        "kage mcp trust --list",
        "kage mcp trust --rules                   rules that were changed while kage was running",
    ),
)
@click.argument("name", required=False, shell_complete=complete_server)
@click.option("--show", is_flag=True, help="Only show what would be trusted, and its hash.")
@click.option("--yes", is_flag=True, help="Do not ask; needs --hash.")
@click.option("--hash", "hash_", default="", metavar="HASH", help="What --show printed.")
@click.option("--never", is_flag=True, help="Never start it here, and do not ask again.")
@click.option("--revoke", is_flag=True, help="Take back what was said about it.")
@click.option("--rules", is_flag=True, help="The rules of your own that are held, instead.")
@click.option("--list", "list_", is_flag=True, help="Show everything that is, or could be trusted.")
@click.option("--json", "json_", is_flag=True, help="Print JSON.")
@click.pass_obj
def trust(options: Options, /, name: str | None, **flags: Any) -> None:
    """Let a server of a project start, after a look at exactly what it would do.

    Servers declared in a project's .kage/config.toml or .mcp.json do not start before. Trust is for
    one entry as it stands: when any part of it changes, it is asked for again.

    Exit code 0 when the entry is trusted (or the answer was taken), else 1.
    """
    if flags["rules"] and name is None:
        sys.exit(_rules(ground(options), flags))
    if flags["list_"] or name is None:
        if name is not None or not flags["list_"]:
            raise UsageError("Give the name of a server, or --list", fix="kage mcp trust --list")
        _list(ground(options), json_=flags["json_"])
        return
    here = ground(options).sound()
    refuse_agent(here.environ, "mcp trust")
    if sum(bool(flags[verb]) for verb in ("show", "yes", "never", "revoke")) > 1:
        raise UsageError("--show, --yes, --never and --revoke exclude each other")
    desk = desk_of(here)
    desk.listen(complain)
    if flags["revoke"]:
        sys.exit(_revoke(desk, name))
    question = desk.question(name)
    if flags["show"]:
        _show(question, json_=flags["json_"])
        sys.exit(0 if question.standing is Standing.TRUSTED else 1)
    sys.exit(_decide(desk, question, flags))


def _decide(desk: TrustDesk, question: TrustQuestion, flags: dict[str, Any]) -> int:
    name = visible(question.name, single_line=True)
    if question.identity.origin == "user" and question.standing is Standing.TRUSTED:
        print(f"{name} is your own entry; it needs no trust")
        return 0
    if flags["never"]:
        if question.identity.origin == "user":
            raise UsageError(f"{name} is your own entry", fix=f"kage mcp disable {name}")
        answer = TrustAnswer.NEVER
    elif question.standing is Standing.TRUSTED:
        print(f"{name} is trusted already")
        return 0
    elif flags["yes"]:
        _compare(question, flags["hash_"])
        answer = TrustAnswer.TRUST
    else:
        answer = _ask(question)
    if answer is TrustAnswer.LATER:
        print(f"{name} is not trusted")
        return 1
    if not desk.answer(question.name, question.identity.entry_hash, answer):
        raise UsageError(f"{name} changed meanwhile", fix="Look at it again.")
    print(f"{name} is trusted" if answer is TrustAnswer.TRUST else f"{name} is never started here")
    return 0


def _compare(question: TrustQuestion, given: str) -> None:
    """Refuse to trust something else than what was looked at."""
    fix = f"See it, and its hash: kage mcp trust {question.name} --show"
    if not given:
        raise UsageError("--yes needs --hash", fix=fix)
    if given != question.identity.entry_hash:
        raise UsageError("That is not the hash of the entry as it stands", fix=fix)


def _ask(question: TrustQuestion) -> TrustAnswer:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        _show(question, json_=False)
        raise UsageError(
            "Nobody is here to be asked",
            fix="In a terminal kage asks; a script gives --yes and --hash.",
        )
    _show(question, json_=False)
    sure = click.confirm("Trust this entry as it stands?", default=False)
    return TrustAnswer.TRUST if sure else TrustAnswer.LATER


def _rules(here: Ground, flags: dict[str, Any]) -> int:
    """Show the held rules, and let them count when the person says so."""
    refuse_agent(here.environ, "mcp trust")
    desk = desk_of(here)
    desk.listen(complain)
    pieces = desk.book.held_rules()
    found = digest({"rules": sorted(piece.hash for piece in pieces)})
    shown = [visible(piece.words, single_line=True) for piece in pieces]
    if flags["json_"]:
        as_json({"rules": shown, "hash": found})
    elif not pieces:
        print("No rule is held")
    else:
        print("Written while kage was running, and not counting yet:")
        print("\n".join(f"  {words}" for words in shown))
        print(f"hash  {found}")
    if flags["show"] or not pieces:
        return 0
    if flags["yes"] and flags["hash_"] != found:
        raise UsageError("--yes needs the --hash of the rules as they stand")
    if not flags["yes"]:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            return 1
        if not click.confirm("Let these rules count?", default=False):
            return 1
    desk.book.allow_rules(pieces)
    print("They count from the next start of kage")
    return 0


def _revoke(desk: TrustDesk, name: str) -> int:
    """Take an answer back, also about an entry that is gone from its file."""
    origins = {spec.origin for spec in _specs(desk) if spec.name == name}
    here = [record for record in desk.book.trusted() if record.name == name]
    if not origins:
        origins = {record.origin for record in here}
        if len(origins) > 1:
            raise UsageError(f"{name} is trusted in several projects", fix="Run it in one of them.")
    done = [origin for origin in origins if origin != "user" and desk.book.revoke(name, origin)]
    print(
        f"{visible(name, single_line=True)} is no longer trusted" if done else "Nothing to revoke"
    )
    return 0 if done else 1


def _specs(desk: TrustDesk) -> tuple[Any, ...]:
    settings = desk.loaded.settings
    return (*settings.servers.values(), *settings.project_servers)


def _list(here: Ground, *, json_: bool) -> None:
    """Show the entries that trust is about, and what was trusted elsewhere."""
    desk = desk_of(here)
    desk.listen(complain)
    rows = []
    for spec in _specs(desk):
        standing = desk.standing(spec)
        if spec.origin == "user" and standing is Standing.TRUSTED:
            continue
        rows.append(_entry(spec.name, standing, spec.origin, str(spec.place or "")))
    known = {(row["name"], row["origin"]) for row in rows}
    for record in desk.book.trusted():
        if (record.name, record.origin) not in known:
            row = _entry(record.name, Standing.TRUSTED, record.origin, "")
            rows.append({**row, "since": record.since})
    if json_:
        as_json(rows)
    elif not rows:
        print("No server here needs trust, and none is trusted elsewhere.")
    else:
        table(
            ("NAME", "STATE", "ORIGIN", "PLACE"),
            [(r["name"], _WORDS[r["state"]], r["origin"], r["place"]) for r in rows],
        )


def _entry(name: str, standing: Standing, origin: str, place: str) -> dict[str, Any]:
    return {"name": name, "state": standing, "origin": origin, "place": place}


def _show(question: TrustQuestion, *, json_: bool) -> None:
    identity = question.identity
    if json_:
        as_json(
            {
                "name": identity.name,
                "origin": identity.origin,
                "place": question.place,
                "state": question.standing,
                "hash": identity.entry_hash,
                "entry": dict(identity.seen),
                "variables": dict(question.variables),
                "changes": [{"part": c.part, "old": c.old, "new": c.new} for c in question.changes],
                "warnings": list(question.warnings),
            }
        )
        return
    for line in lines(question):
        print(line)


def lines(question: TrustQuestion) -> list[str]:
    """Give the question line by line, safe to show."""
    identity = question.identity

    where = f"{exact(identity.name)}, declared in {exact(question.place)}"
    found = [f"{where}: {_WORDS[question.standing]}"]
    found += [f"warning: {exact(text)}" for text in question.warnings]
    for change in question.changes:
        found += [f"  {exact(change.part)}"]
        found += [f"    - {exact(change.old)}"] if change.old else []
        found += [f"    + {exact(change.new)}"] if change.new else []
    parts = {exact(part): exact(value) for part, value in identity.seen.items()}
    if question.variables:
        parts["it reads"] = ", ".join(
            f"{exact(name)} ({'set' if is_set else 'not set'})"
            for name, is_set in question.variables
        )
    parts["hash"] = identity.entry_hash
    width = min(max(map(len, parts)), 30)
    return [*found, *(f"  {part:{width}}  {value}" for part, value in parts.items())]
