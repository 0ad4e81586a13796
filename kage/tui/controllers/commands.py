"""The slash commands: one table for parser, palette, help screen and documentation."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import StrEnum

from kage.core.gate import Mode
from kage.tui.text import shown


class Arg(StrEnum):
    """What an argument of a command is, for completion."""

    MODEL = "MODEL"
    SERVER = "SERVER"
    SESSION = "SESSION"
    MODE = "MODE"
    VERB = "VERB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command; ``arguments`` are optional unless the handler says otherwise."""

    name: str
    help: str
    arguments: tuple[Arg, ...] = ()
    usage: str = ""
    more: int = 0  # words it takes beyond its arguments
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Its name and the other spellings."""
        return (self.name, *self.aliases)


COMMANDS: tuple[Command, ...] = (
    Command(
        name="model", help="choose the model that answers", arguments=(Arg.MODEL,), usage="[MODEL]"
    ),
    Command(
        name="mcp",
        help="show the servers, restart, enable, disable one, show its log, or reload settings",
        arguments=(Arg.VERB, Arg.SERVER),
        more=1,
        usage="[restart|enable|disable|log|trust|pins|login|logout NAME|log NAME LEVEL|reload]",
        aliases=("servers",),
    ),
    Command(
        name="permission",
        help="set what asks in this session",
        arguments=(Arg.MODE,),
        usage="[default|ask|deny]",
        aliases=("permissions",),
    ),
    Command(
        name="clear",
        help="start a fresh conversation; the old one stays on disk",
        aliases=("new", "reset"),
    ),
    Command(
        name="resume",
        help="go on with an earlier conversation",
        arguments=(Arg.SESSION,),
        usage="[SESSION]",
        aliases=("sessions", "continue"),
    ),
    Command(
        name="undo",
        help="take back what a call did to files, after showing what will happen",
        aliases=("revert",),
    ),
    Command(name="unknown", help="check, retry or leave a call whose outcome is unknown"),
    Command(name="help", help="show every key and command", aliases=("keys",)),
    Command(name="quit", help="leave kage", aliases=("exit", "q")),
)

LEVELS = (
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
)  # fmt: skip
VERBS = {
    "restart": "the old one serves until the new one is up",
    "reload": "read the settings again; with a name, restart that server with them",
    "enable": "start it for this session",
    "disable": "stop it for this session",
    "log": "show what it wrote; with a level, choose what it is asked to tell",
    "trust": "show what it would start, and decide about it",
    "pins": "show definitions that changed, and decide about them",
    "login": "sign in to it in the browser",
    "logout": "forget the sign-in",
}
MODES = {
    Mode.DEFAULT: "what only reads here runs, everything else asks you",
    Mode.ASK: "every call asks you, grants do not count",
    Mode.DENY: "what would ask is refused",
}

_BY_NAME = {name: command for command in COMMANDS for name in command.names}


@dataclass(frozen=True, slots=True)
class Typed:
    """A command line taken apart; ``command`` is None when there is no such command."""

    name: str
    words: tuple[str, ...]
    command: Command | None


def is_command(draft: str) -> bool:
    """Say whether a draft is a command: one line, ``/`` and a word, not a path."""
    head = draft.split(maxsplit=1)[0] if draft.startswith("/") and draft.strip() else ""
    return len(head) > 1 and "/" not in head[1:] and "\n" not in draft.strip()


def parse(draft: str) -> Typed:
    """Take a command line apart at white space."""
    name, *words = draft.strip()[1:].split()
    return Typed(name, tuple(words), _BY_NAME.get(name.lower()))


def suggestion(typed: Typed) -> str:
    """Say what may have been meant by an unknown command."""
    near = nearest(typed.name, tuple(_BY_NAME))
    hint = f" Did you mean /{near}?" if near else " /help lists them all."
    return f"There is no command /{shown(typed.name, 30)}.{hint}"


def nearest(word: str, known: tuple[str, ...]) -> str:
    """Give the known word closest to ``word``, "" when none is close."""
    near = difflib.get_close_matches(word.lower(), known, 1, 0.5)
    return near[0] if near else next((name for name in known if name.startswith(word)), "")
