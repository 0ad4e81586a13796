"""Change a settings file the way every verb does: prove it first, record it, write it, tell it."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from kage.cli.ground import Ground, Options, ground, refuse_agent
from kage.cli.output import as_json
from kage.config.edit import TomlText
from kage.config.load import Loaded, load
from kage.config.loosening import loosenings
from kage.config.project import PROJECT_CONFIG
from kage.config.rewrite import preview, rewrite
from kage.config.schema import ServerSpec
from kage.config.secrets import everywhere, hidden, literals, shown
from kage.config.seen import written_hash
from kage.core.errors import ConfigError
from kage.core.sanitise import visible

Scope = Literal["user", "project"]
SCOPES: tuple[Scope, ...] = ("user", "project")
Edit = Callable[[TomlText], None]

scope_option = click.option(
    "--scope",
    type=click.Choice(SCOPES),
    help="Your own config.toml, or the project's .kage/config.toml.",
)
dry_option = click.option("-n", "--dry-run", is_flag=True, help="Show it, write nothing.")
json_option = click.option("--json", "json_", is_flag=True, help="Print JSON.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A change that has been proven and not been written."""

    file: Path
    scope: Scope
    edit: Edit
    draft: TomlText
    before: Loaded  # what kage would have read just before this change, by whomever it is
    loaded: Loaded  # what kage would read

    def spec(self, name: str) -> ServerSpec | None:
        """Give the server ``name`` as kage would read it."""
        settings = self.loaded.settings
        if self.scope == "user":
            return settings.servers.get(name)
        found = [entry.spec for entry in self.loaded.entries if entry.spec.name == name]
        return found[0] if found else None


def file_of(here: Ground, scope: Scope) -> Path:
    """Give the file a scope is kept in."""
    if scope == "project":
        return here.workspace / PROJECT_CONFIG
    return here.options.config_file or here.paths.config_file


def prepare(here: Ground, scope: Scope, edit: Edit) -> Prepared:
    """Apply ``edit`` without writing, and read the result as kage will.

    Raises:
        ConfigError: the file is no TOML, or the change brings a mistake that was not there.
        KageError: the file cannot take the change.
    """
    file = file_of(here, scope)
    draft = preview(file, edit)
    loaded = _read(here, scope, file, draft.text)
    before = _read(here, scope, file, draft.before)
    old = Counter((fault.key, fault.what) for fault in before.faults)
    new = [fault for fault in loaded.faults if not old[(fault.key, fault.what)]]
    if new:
        raise ConfigError(tuple(new))
    return Prepared(file=file, scope=scope, edit=edit, draft=draft, before=before, loaded=loaded)


def write(
    here: Ground, prepared: Prepared, changed: Iterable[str] = (), *, trust: bool = False
) -> TomlText:
    """Write what was prepared.

    Args:
        here: What the verb stands on.
        prepared: The change.
        changed: The servers the person changed by it.
        trust: The person gave the whole entry, so that one for the project is trusted.

    Raises:
        ConfigError: the file became unreadable meanwhile.
        KageError: it cannot be written.
    """
    specs = [spec for name in changed if (spec := prepared.spec(name)) is not None]
    if prepared.scope == "user":
        _record(here, prepared)
    draft = rewrite(prepared.file, prepared.edit)
    if specs and prepared.scope == "project" and trust:
        from kage.cli.trusting import record_entry_change

        record_entry_change(here, *(spec.name for spec in specs), trust=True)
    return draft


def _record(here: Ground, prepared: Prepared) -> None:
    """Let a running kage know that the person made this change, so that it is not held.

    Only what this change itself makes of the file counts: what somebody else wrote into it since
    the verb began, while a question stood open say, is not the person's.
    """
    known = {_running(entry.spec) for entry in prepared.before.entries}
    specs = [
        entry.spec
        for entry in prepared.loaded.entries
        if not entry.spec.disabled and _running(entry.spec) not in known
    ]
    pieces = loosenings(prepared.before.own, prepared.loaded.own)
    if not specs and not pieces:
        return
    from kage.cli.trusting import TRUST_FILE
    from kage.config.trust import TrustBook
    from kage.permissions.decisions.log import DecisionLog

    log = DecisionLog(here.paths.data / "decisions")
    try:
        book = TrustBook(here.paths.data / TRUST_FILE, log=log, on_notice=say)
        for spec in specs:
            book.record_change(spec)
        book.allow_rules(pieces, verb=True)
    finally:
        log.close()


def _running(spec: ServerSpec) -> tuple[str, bool]:
    return written_hash(spec), spec.disabled


def mine(options: Options, verb: str) -> Ground:
    """Give the ground for a verb that changes something; not for the agent itself.

    Raises:
        UsageError: the agent's own shell runs it.
    """
    here = ground(options)
    refuse_agent(here.environ, verb)
    return here


def finish(
    here: Ground, prepared: Prepared, name: str, flags: Mapping[str, Any], *, trust: bool = False
) -> bool:
    """Write the entry ``name`` unless it is a dry run, and tell; gives whether it was written."""
    path = ("mcp", "servers", name)
    draft = prepared.draft
    if not flags["dry_run"]:
        draft = write(here, prepared, [name], trust=trust)
    written = draft.changed and not flags["dry_run"]
    entry = draft.get(path, {})
    line = draft.line(path) if entry else 0
    place = f"{prepared.file}:{line}" if line else str(prepared.file)
    if flags["json_"]:
        as_json(
            {
                "name": name,
                "scope": prepared.scope,
                "file": str(prepared.file),
                "line": line,
                "written": written,
                "entry": shown(entry, literals(name, entry)),
                "diff": safe_diff(draft),
            }
        )
    elif flags["dry_run"]:
        print(safe_diff(draft), end="")
        say("nothing was written")
    else:
        done = place if entry else f"taken out of {place}"
        print(f"{name}: {done}" if written else f"{name}: nothing to change in {place}")
        if prepared.scope == "project" and line and written and trust:
            say("it is trusted on this machine; others who use the project are asked")
    return written


def safe_diff(draft: TomlText) -> str:
    """Give the changes of a draft with every secret hidden, ready for a terminal."""
    try:
        before = tomllib.loads(draft.before.removeprefix("\ufeff"))
    except ValueError:  # cannot be, it was read before
        before = {}
    return visible(hidden(draft.diff(), (*everywhere(before), *everywhere(draft.data))))


def on_terminal() -> bool:
    """Say whether there is a person to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str) -> bool:
    """Ask a person; no is the answer of whoever presses enter."""
    return click.confirm(question, default=False, err=True)


def say(text: str) -> None:
    """Tell something beside the result."""
    from kage.plain.text import complain

    complain(text)


def _read(here: Ground, scope: Scope, file: Path, text: str) -> Loaded:
    """Read ``text`` as kage would read ``file``."""
    with tempfile.TemporaryDirectory(prefix="kage-") as folder:
        base = Path(folder).resolve()
        workspace = base / "work"
        paths = dataclasses.replace(
            here.paths, config=base / "config", config_file=base / "config" / "config.toml"
        )
        copy = paths.config_file if scope == "user" else workspace / PROJECT_CONFIG
        copy.parent.mkdir(parents=True)
        copy.write_text(text, encoding="utf-8", newline="")
        loaded = load(paths=paths, workspace=workspace)
    faults = tuple(dataclasses.replace(fault, file=file) for fault in loaded.faults)
    return dataclasses.replace(loaded, faults=faults)
