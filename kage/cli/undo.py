"""``kage session undo``: take back from a shell what a call of a conversation did to files."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from kage.agent.undo import UndoDesk, Undone
from kage.agent.undoing import told
from kage.cli.ground import Ground, Options, ground, refuse_agent
from kage.cli.hiding import hide_keys, hide_secrets
from kage.cli.output import as_json, examples, table
from kage.core.content import Text
from kage.core.messages import UserMessage
from kage.core.sanitise import visible
from kage.core.undo import UndoItem, UndoPlan, UndoStep
from kage.sessions.store import SessionStore
from kage.sessions.undo import FOLDER, UndoStore


@click.command(
    epilog=examples(
        "kage session undo s1m7x --list",
        "kage session undo s1m7x --dry-run",
        "kage session undo s1m7x --call u1m7x2k9",
    )
)
@click.argument("session_id", metavar="ID")
@click.option("--call", "call", default="", metavar="C", help="This call, not the newest.")
@click.option("--list", "list_", is_flag=True, help="Show what can be undone, newest first.")
@click.option("--dry-run", is_flag=True, help="Show what would happen, with the difference.")
@click.option("--json", "json_", is_flag=True, help="Print JSON.")
@click.pass_obj
def undo(
    options: Options, session_id: str, call: str, list_: bool, dry_run: bool, json_: bool
) -> None:
    """Take back what a call did to files; ID may be the beginning of one.

    Nothing is done when a file changed since. Undoing can be undone: it is listed as a call.
    """
    here = ground(options)
    hide_secrets(here)
    hide_keys(here)
    store = SessionStore(here.paths.data / "sessions", redact=here.redact)
    desk = _desk(here, store.find(session_id))
    if list_:
        _show_list(desk.items(), json_=json_)
        return
    if dry_run:
        plan = desk.plan(call)
        _show_plan(plan, json_=json_)
        if not plan.possible:
            sys.exit(1)
        return
    refuse_agent(here.environ, "session undo")
    session, _ = store.open(session_id)
    try:
        done = desk.carry_out(call or desk.plan().record.id)
        session.append(UserMessage(content=(Text(here.redact(told(done))),)))
    finally:
        session.close()
    _show_done(done, json_=json_)


def _desk(here: Ground, folder: Path) -> UndoDesk:
    kept = UndoStore(folder / FOLDER, most=here.settings.undo.keep_mb << 20)
    return UndoDesk(store=kept, redact=here.redact)


def _show_list(items: tuple[UndoItem, ...], *, json_: bool) -> None:
    if json_:
        as_json([_item(item) for item in items])
        return
    if not items:
        print("No call of this session changed a file that kage knows of.")
        return
    table(
        ("CALL", "WHEN", "FILES", "WHAT", ""),
        [
            (
                item.record.id,
                time.strftime("%Y-%m-%d %H:%M", time.localtime(item.record.at)),
                str(len(item.record.changes)),
                item.record.title,
                f"cannot be undone: {item.why}" if item.why else "",
            )
            for item in items
        ],
    )


def _show_plan(plan: UndoPlan, *, json_: bool) -> None:
    if json_:
        steps = [_step(step) for step in plan.steps]
        fields = {"possible": plan.possible, "why": plan.why, "files": steps, "diff": plan.diff}
        as_json({**_item(UndoItem(record=plan.record, why=plan.why)), **fields})
        return
    print(f"Undo: {visible(plan.record.title, single_line=True)}")
    if plan.why:
        print(f"cannot be undone: {plan.why}")
    for step in plan.steps:
        print(f"  {_word(step)}  {visible(step.change.shown, single_line=True)}")
    if plan.diff:
        print(visible(plan.diff), end="")


def _show_done(done: Undone, *, json_: bool) -> None:
    if json_:
        files = [{"path": change.path, "did": change.remedy} for change in done.restored]
        left = [{"path": step.change.path, "why": step.left} for step in done.left]
        call = {"id": done.record.id, "call": done.record.call_id, "title": done.record.title}
        as_json({**call, "files": files, "left": left, "again": done.again})
        return
    count = len(done.restored)
    title = visible(done.record.title, single_line=True)
    print(f"Undone: {title} ({count} file{'s' * (count != 1)})")
    for step in done.left:
        name = visible(step.change.shown, single_line=True)
        print(f"kage: {name} stays as the call left it: {step.left}", file=sys.stderr)


def _item(item: UndoItem) -> dict[str, Any]:
    record = item.record
    return {
        "id": record.id,
        "call": record.call_id,
        "title": record.title,
        "at": record.at,
        "files": len(record.changes),
        "beside": record.beside,
        "why": item.why,
    }


def _step(step: UndoStep) -> dict[str, Any]:
    return {
        "path": step.change.path,
        "verb": step.change.verb,
        "conflict": step.conflict,
        "done": step.done,
        "left": step.left,
    }


def _word(step: UndoStep) -> str:
    if step.conflict:
        return f"{step.conflict}:"
    if step.left:
        return f"stays ({step.left}):"
    return "as before already:" if step.done else f"{step.change.remedy}:"
