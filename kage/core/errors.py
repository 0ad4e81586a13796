"""Every error a person can meet, in one tree.

KageError
├── UsageError          the command line was wrong
├── ConfigError         a file kage reads has a mistake (file, line, key)
├── ProviderError       the model's side failed
│   ├── AuthFailed          key missing or refused
│   ├── UnknownModel        the endpoint does not know the model
│   ├── ContextTooLong      the conversation no longer fits
│   ├── Overloaded          busy or rate limited; worth trying again
│   └── Unreachable         no connection, or the stream broke off
├── ServerError         an MCP server failed (server, stage)
├── ToolError           a tool could not do what it was asked
├── Refused             the gate said no
├── SandboxRefused      a sandbox was asked for and there is none (core.sandbox)
└── SessionError        a session cannot be read or is in use
    └── SessionLocked       another kage holds it
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class KageError(Exception):
    """Say what happened, why, and what to do next, without internal names.

    Args:
        what: One sentence: what did not work.
        why: The first real cause, or "" when there is none to tell.
        fix: What the person can do now, or "".
    """

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        text = self.what if not self.why else f"{self.what}: {self.why}"
        return f"{text}. {self.fix}" if self.fix else text


class UsageError(KageError):
    """The command line or a typed command was wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFault:
    """One mistake in one file; prints as ``file:line: key: what, expected, got``."""

    file: Path
    line: int  # 1-based; 0 when the file gives none
    key: str  # dotted, as it would be written; "" for the whole file
    what: str
    expected: str = ""
    got: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else str(self.file)
        text = f"{place}: {self.key}: {self.what}" if self.key else f"{place}: {self.what}"
        if self.expected:
            text += f", expected {self.expected}"
        if self.got:
            text += f", got {self.got}"
        return text


class ConfigError(KageError):
    """One or more files kage reads have mistakes; all of them are told at once."""

    def __init__(self, faults: tuple[ConfigFault, ...]) -> None:
        count = "a mistake" if len(faults) == 1 else f"{len(faults)} mistakes"
        super().__init__(f"The configuration has {count}", why="\n".join(map(str, faults)))
        self.faults = faults


class ProviderError(KageError):
    """The model's side failed; the draft and the session are kept."""

    def __init__(
        self,
        what: str,
        *,
        why: str = "",
        fix: str = "",
        provider: str = "",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(what, why=why, fix=fix)
        self.provider = provider
        self.status = status  # HTTP status, where there was one
        self.retry_after = retry_after  # seconds the endpoint asked us to wait


class AuthFailed(ProviderError):
    """The key is missing or was refused."""


class UnknownModel(ProviderError):
    """The endpoint does not offer the model."""


class ContextTooLong(ProviderError):
    """The conversation no longer fits the model's window."""


class Overloaded(ProviderError):
    """The endpoint is busy or limits the rate; trying again later can work."""


class Unreachable(ProviderError):
    """There was no connection, or the stream broke off."""


class ServerError(KageError):
    """An MCP server failed; names the server and the stage it failed in."""

    def __init__(
        self,
        what: str,
        *,
        server: str,
        stage: str,
        why: str = "",
        fix: str = "",
        exit_code: int | None = None,
        stderr: tuple[str, ...] = (),
    ) -> None:
        super().__init__(what, why=why, fix=fix)
        self.server = server
        self.stage = stage  # spawn, handshake, list, call, ping, exit
        self.exit_code = exit_code  # negative: the signal that ended it
        self.stderr = stderr  # its last lines, where kage holds that pipe


class ToolError(KageError):
    """A tool could not do what it was asked; the text goes to the model as a result."""


class Refused(KageError):
    """The gate said no; ``rule`` names what decided."""

    def __init__(self, what: str, *, rule: str = "", why: str = "", fix: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.rule = rule


class SessionError(KageError):
    """A session cannot be read."""


class SessionLocked(SessionError):
    """Another kage holds the session; ``pid`` is its process, 0 when unknown."""

    def __init__(self, what: str, *, pid: int, why: str = "", fix: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.pid = pid
