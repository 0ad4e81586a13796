"""What the palette offers for a draft: commands, then their arguments, best match first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kage.tui.controllers.commands import COMMANDS, MODES, VERBS, Arg, Command, parse
from kage.tui.text import shown
from kage.tui.widgets.palette import Choice

if TYPE_CHECKING:
    from kage.core.servers import ServerStatus
    from kage.core.sessions import SessionInfo
    from kage.providers.base import ModelInfo

MOST = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What arguments can be completed from."""

    models: tuple[ModelInfo, ...] = ()
    servers: tuple[ServerStatus, ...] = ()
    sessions: tuple[SessionInfo, ...] = ()


def complete(draft: str, known: Known) -> tuple[Choice, ...]:
    """Give what ``draft`` could become; () when it is no command or already whole."""
    if not draft.startswith("/") or "\n" in draft or draft.startswith("//"):
        return ()
    head, space, rest = draft.partition(" ")
    if "/" in head[1:]:
        return ()  # a path
    if not space:
        return _commands(head[1:])
    command = parse(head).command if len(head) > 1 else None
    if command is None or not command.arguments:
        return ()
    *before, last = rest.split(" ")
    words = [word for word in before if word]
    if len(words) >= len(command.arguments):
        return ()
    prefix = " ".join([head, *words, ""])
    more = len(words) + 1 < len(command.arguments)
    choices = [
        Choice(label=shown(value, 60), insert=f"{prefix}{value}{' ' if more else ''}", help=text,
               complete=not more)
        for value, text in _values(command.arguments[len(words)], known)
        if shown(value, 200) == value and " " not in value  # a draft holds what is sent as it is
    ]  # fmt: skip
    ranked = rank(last, choices)
    return () if len(ranked) == 1 and ranked[0].insert.strip() == draft.strip() else ranked


def wanted(draft: str) -> Arg | None:
    """Say which kind of argument the draft is at, so that it can be fetched."""
    head, space, rest = draft.partition(" ")
    if not space or len(head) < 2 or not head.startswith("/"):
        return None
    command = parse(head).command
    place = len(rest.split(" ")) - 1
    if command is None or place >= len(command.arguments):
        return None
    return command.arguments[place]


def rank(pattern: str, choices: Iterable[Choice]) -> tuple[Choice, ...]:
    """Keep what matches ``pattern``, best first, in a stable order."""
    scored = [(score(pattern, choice.label), choice) for choice in choices]
    kept = [(points, choice) for points, choice in scored if points is not None]
    kept.sort(key=lambda item: -item[0])
    return tuple(choice for _, choice in kept[:MOST])


def score(pattern: str, text: str) -> float | None:
    """Say how well the letters of ``pattern`` stand in ``text`` in order; None when they do not.

    Letters at the start, after a separator and next to each other count more; a shorter text
    wins between equals.
    """
    if not pattern:
        return 0.0
    low, target = pattern.lower(), text.lower()
    if target.startswith(low):
        return 1_000.0 - len(text)
    found = target.find(low)
    if found >= 0:
        return 500.0 - found - len(text) / 100
    points, place = 0.0, -1
    for letter in low:
        at = target.find(letter, place + 1)
        if at < 0:
            return None
        points += 10 if at == place + 1 else 5 if at and not target[at - 1].isalnum() else 1
        place = at
    return points - len(text) / 100


def _commands(typed: str) -> tuple[Choice, ...]:
    names = [
        (name, command) for command in COMMANDS for name in command.names
        if name == command.name or (typed and name.startswith(typed.lower()))
    ]  # fmt: skip
    ranked = rank(typed, [_command(name, command) for name, command in names])
    seen: set[str] = set()
    kept = []
    for choice in ranked:  # one line for each command, under its best spelling
        if choice.help not in seen:
            seen.add(choice.help)
            kept.append(choice)
    return tuple(kept)


def _command(name: str, command: Command) -> Choice:
    usage = f"  {command.usage}" if command.usage else ""
    return Choice(
        label=f"/{name}",
        insert=f"/{name} " if command.arguments else f"/{name}",
        help=f"{command.help}{usage}",
    )


def _values(kind: Arg, known: Known) -> list[tuple[str, str]]:
    match kind:
        case Arg.MODEL:
            return [(model.id, _window(model)) for model in known.models]
        case Arg.SERVER:
            return [(server.name, server.state.value) for server in known.servers]
        case Arg.SESSION:
            return [(info.id, shown(info.title, 80)) for info in known.sessions]
        case Arg.MODE:
            return [(mode.value, text) for mode, text in MODES.items()]
        case Arg.VERB:
            return list(VERBS.items())


def _window(model: ModelInfo) -> str:
    return f"{model.window:,} tokens" if model.window else ""
