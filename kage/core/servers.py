"""How an MCP server is doing, in the words every screen and log uses (DESIGN section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ServerState(StrEnum):
    """The life of a server."""

    DISABLED = "disabled"
    IDLE = "idle"
    UNTRUSTED = "untrusted"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    DRAINING = "draining"
    NEEDS_AUTH = "needs_auth"
    FAILED = "failed"
    STOPPED = "stopped"


class Stage(StrEnum):
    """Where in its life something happened."""

    CONFIG = "config"
    SPAWN = "spawn"
    HANDSHAKE = "handshake"
    LIST = "list"
    CALL = "call"
    PING = "ping"
    EXIT = "exit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What went wrong with a server, ready to be shown (text is not yet sanitised)."""

    stage: Stage
    what: str
    why: str = ""
    fix: str = ""
    exit_code: int | None = None  # negative: the signal that ended it
    stderr: tuple[str, ...] = ()  # last lines; () where kage does not hold that pipe


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """One server at one moment."""

    name: str
    origin: str
    state: ServerState
    since: float  # monotonic seconds of the last change of state
    transport: str = "stdio"
    command: str = ""  # what was started, shell-quoted, or the url
    pid: int | None = None
    protocol: str = ""  # the revision spoken, "" before the handshake
    version: str = ""  # the server's name and version, as it says
    tools: int = 0
    prompts: int = 0
    resources: int = 0
    templates: int = 0
    tokens: int = 0  # what the definitions of its tools cost a model, roughly
    dropped: tuple[str, ...] = ()  # tools left out, each with its reason
    held: tuple[str, ...] = ()  # what changed and waits for the person, each with its reason
    fault: Fault | None = None
    attempt: int = 0  # reconnect try under way, of ``attempts``
    attempts: int = 0
    instructions: str = ""
    stray_lines: int = 0  # lines on stdout that were no protocol


def deprecation(transport: str) -> str:
    """Say what speaks against a way to reach servers, "" for nothing."""
    return "use streamable HTTP (http) where the server has it" if transport == "sse" else ""


_PROCESS = (ServerState.CONNECTED, ServerState.CONNECTING, ServerState.DRAINING)


def described(status: ServerStatus, *, now: float) -> dict[str, Any]:
    """Give a status as JSON has it, for every place that prints one.

    ``status`` is the coarse word scripts want: ``running`` while kage holds a connection or makes
    one, else ``idle``. ``age`` is seconds in this state, and so is ``uptime`` while connected.

    Args:
        now: Monotonic seconds.
    """
    fault = status.fault
    age = round(max(now - status.since, 0.0), 1)
    return {
        "name": status.name,
        "origin": status.origin,
        "state": status.state.value,
        "status": "running" if status.state in _PROCESS else "idle",
        "age": age,
        "uptime": age if status.state is ServerState.CONNECTED else None,
        "transport": status.transport,
        "deprecated": deprecation(status.transport),
        "command": status.command,
        "pid": status.pid,
        "protocol": status.protocol,
        "era": _era(status.protocol),
        "version": status.version,
        "tools": status.tools,
        "tools_count": status.tools,
        "prompts": status.prompts,
        "resources": status.resources,
        "templates": status.templates,
        "tokens": status.tokens,
        "dropped": list(status.dropped),
        "held": list(status.held),
        "attempt": status.attempt,
        "attempts": status.attempts,
        "instructions": status.instructions,
        "stray_lines": status.stray_lines,
        "fault": None if fault is None else _told(fault),
        "last_error": "" if fault is None else fault.what,
    }


def _era(protocol: str) -> str:
    if not protocol:
        return ""
    return "modern" if protocol >= "2026-07-28" else "legacy"


def _told(fault: Fault) -> dict[str, Any]:
    return {
        "stage": fault.stage.value,
        "what": fault.what,
        "why": fault.why,
        "fix": fault.fix,
        "exit_code": fault.exit_code,
        "stderr": list(fault.stderr),
    }
