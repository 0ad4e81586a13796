"""``kage session …``: the conversations on disk."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path

import click

from kage.cli.ground import Ground, Options, ground
from kage.cli.output import as_json, examples, table
from kage.cli.undo import undo
from kage.core.content import Text, as_text
from kage.core.messages import AssistantMessage, ToolMessage, UserMessage
from kage.core.sanitise import visible
from kage.plain.jsonl import plain
from kage.sessions.artifacts import listing
from kage.sessions.store import SessionStore
from kage.sessions.writer import ARTIFACTS

_JSON = click.option("--json", "json_", is_flag=True, help="Print JSON.")


@click.group(
    name="session",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples("kage session list", "kage session show s1m7x", "kage session resume s1m7x"),
)
def group() -> None:
    """Conversations on disk."""


@group.command("list", epilog=examples("kage session list", "kage session list --all --json"))
@click.option("--all", "everywhere", is_flag=True, help="Of every folder, not only this one.")
@_JSON
@click.pass_obj
def list_(options: Options, everywhere: bool, json_: bool) -> None:
    """Show the conversations, newest first."""
    here = ground(options)
    found = _store(here).list(None if everywhere else here.workspace)
    if json_:
        as_json([{k: v for k, v in plain(info).items() if k != "kind"} for info in found])
        return
    if not found:
        print("No sessions here yet." if not everywhere else "No sessions yet.")
        return
    table(
        ("ID", "CHANGED", "MESSAGES", "MODEL", "TITLE"),
        [
            (
                info.id,
                time.strftime("%Y-%m-%d %H:%M", time.localtime(info.changed)),
                str(info.messages),
                info.model,
                info.title + (f"  (open in process {info.locked_by})" if info.locked_by else ""),
            )
            for info in found
        ],
    )


@group.command(epilog=examples("kage session show s1m7x", "kage session show s1m7x --artifacts"))
@click.argument("session_id", metavar="ID")
@click.option("--artifacts", is_flag=True, help="List the files its results were kept in.")
@_JSON
@click.pass_obj
def show(options: Options, session_id: str, artifacts: bool, json_: bool) -> None:
    """Print a conversation; ID may be the beginning of one."""
    here = ground(options)
    if artifacts:
        _list_artifacts(_store(here).find(session_id) / ARTIFACTS, json_=json_)
        return
    held = _store(here).load(session_id)
    for note in held.dropped:
        print(f"kage: {visible(note)}", file=sys.stderr)
    if json_:
        data = plain(held)
        del data["kind"]
        as_json(data)
        return
    for message in held.messages:
        print(visible(here.redact(_told(message))), end="\n\n")


@group.command(epilog=examples("kage session resume s1m7x"))
@click.argument("session_id", metavar="ID")
@click.pass_obj
def resume(options: Options, session_id: str) -> None:
    """Go on with a conversation in the TUI; ID may be the beginning of one."""
    from kage.cli.run import screen

    sys.exit(screen(dataclasses.replace(options, resume=session_id)))


group.add_command(undo)


def _list_artifacts(folder: Path, *, json_: bool) -> None:
    found = listing(folder)
    if json_:
        as_json([{k: v for k, v in plain(info).items() if k != "kind"} for info in found])
        return
    if not found:
        print("This session kept no files.")
        return
    table(
        ("BYTES", "KEPT", "FILE"),
        [
            (
                f"{info.size:,}",
                time.strftime("%Y-%m-%d %H:%M", time.localtime(info.changed)),
                visible(str(info.path), single_line=True),
            )
            for info in found
        ],
    )


def _store(here: Ground) -> SessionStore:
    return SessionStore(here.paths.data / "sessions")


def _told(message: UserMessage | AssistantMessage | ToolMessage) -> str:
    match message:
        case UserMessage():
            return f"you: {as_text(message.content)}"
        case AssistantMessage():
            lines = [f"{message.model}:"]
            for part in message.parts:
                if isinstance(part, Text):
                    lines.append(part.text)
            for call in message.calls:
                lines.append(f"  calls {call.name} {plain(call.arguments)}")
            return "\n".join(lines)
        case ToolMessage():
            text = as_text(message.content)
            return f"{message.name} ({message.outcome.value}, {message.seconds:.1f} s):\n{text}"
