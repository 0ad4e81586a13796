"""``KAGE_LOG``: a log for finding faults, off unless asked for, into a file and nowhere else.

``KAGE_LOG=mcp.*=debug`` or several, ``mcp.*=debug,agent.*=info``: names with ``*``, each with a
level. A name is kage's own (``mcp.server.github``) or a library's (``httpx2``).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from kage.core.errors import UsageError
from kage.core.events import (
    Event,
    Noticed,
    RunFinished,
    RunStarted,
    ServerChanged,
    ToolProgressed,
    ToolStarted,
)
from kage.core.redact import Redactor
from kage.core.sanitise import visible

VARIABLE = "KAGE_LOG"
FILE = "debug.log"
_LEVELS = {name: getattr(logging, name.upper()) for name in ("debug", "info", "warning", "error")}
_APART = ("kage", "mcp", "client")  # loggers that hand nothing on to the root


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One ``name=level``."""

    pattern: str
    level: int

    def takes(self, record: logging.LogRecord) -> bool:
        """Say whether the record is wanted."""
        name = record.name.removeprefix("kage.")
        fits = fnmatchcase(name, self.pattern) or fnmatchcase(f"{name}.", self.pattern)
        return fits and record.levelno >= self.level


def rules(text: str) -> tuple[Rule, ...]:
    """Read the variable.

    Raises:
        UsageError: a part of it is no ``name=level``.
    """
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, sign, level = part.partition("=")
        if not name or (sign and level.lower() not in _LEVELS):
            raise UsageError(
                f"{VARIABLE} holds {visible(part, single_line=True)!r}",
                fix=f"Write NAME=LEVEL, like mcp.*=debug; levels are {', '.join(_LEVELS)}",
            )
        level = level.lower() or "debug"
        found.append(Rule(pattern=name.removeprefix("kage."), level=_LEVELS[level]))
    return tuple(found)


class DebugLog(logging.FileHandler):
    """Writes what the rules take, secrets replaced, to a file only its owner can read."""

    def __init__(self, file: Path, wanted: tuple[Rule, ...]) -> None:
        super().__init__(file, encoding="utf-8", errors="backslashreplace")
        os.chmod(file, 0o600)
        self._wanted = wanted
        self.redact: Callable[[str], str] = str
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))

    def filter(self, record: logging.LogRecord) -> bool:
        """Take a record once, if a rule wants it."""
        if getattr(record, "_kage_seen", False) or not any(r.takes(record) for r in self._wanted):
            return False
        record._kage_seen = True
        return True

    def format(self, record: logging.LogRecord) -> str:
        """Give one line of it."""
        return visible(self.redact(super().format(record)))

    def heard(self, event: Event) -> None:
        """Log an event of the engine or of a server."""
        told = _told(event)
        if told is not None:
            name, level, text = told
            logging.getLogger(f"kage.{name}").log(level, "%s", text)


def start(environ: Mapping[str, str], data: Path) -> None:
    """Begin to log if the variable says so; a disk that refuses costs only the log.

    Raises:
        UsageError: the variable cannot be read.
    """
    wanted = rules(environ.get(VARIABLE, ""))
    if not wanted or running() is not None:
        return
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = DebugLog(data / FILE, wanted)
    except OSError:
        return
    least = min(rule.level for rule in wanted)
    for name in (*_APART, ""):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(least)


def running(redact: Redactor | None = None) -> DebugLog | None:
    """Give the log if there is one; from now on it hides what ``redact`` knows."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, DebugLog):
            if redact is not None:
                handler.redact = redact
            return handler
    return None


def _told(event: Event) -> tuple[str, int, str] | None:
    match event:
        case ServerChanged(status=status):
            reason = f": {status.fault.stage}: {status.fault.what}" if status.fault else ""
            text = f"{status.state.value}, {status.tools} tools, {status.protocol or '-'}{reason}"
            return f"mcp.server.{status.name}", logging.DEBUG, text
        case Noticed():
            level = {"info": logging.INFO, "error": logging.ERROR}
            found = level.get(event.level.value, logging.WARNING)
            return "notice", found, " - ".join(filter(None, (event.what, event.why)))
        case ToolStarted():
            return "agent.call", logging.DEBUG, f"{event.call_id} starts"
        case ToolProgressed():
            return "agent.call", logging.DEBUG, f"{event.call_id} at {event.progress:g}"
        case RunStarted():
            return "agent.run", logging.INFO, "starts"
        case RunFinished():
            return "agent.run", logging.INFO, "ended"
        case _:
            return None
