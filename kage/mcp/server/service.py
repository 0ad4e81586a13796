"""What is served, fixed before the first message: tools, root, and who judges a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:  # a client has its first answer before these are needed
    from kage.core.messages import Outcome
    from kage.core.tools import Tool, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What the person's rules say about one call."""

    verdict: Literal["allow", "ask", "deny"]
    rule: str = ""  # the rule that decided, in the one spelling
    reason: str = ""  # for "deny": the sentence the caller reads


ALLOW = Ruling(verdict="allow")
AGENT = {"KAGE_AGENT": "1"}  # the shell of a foreign agent may not change or start kage either

# a text refuses the call and is what the caller reads; None lets it through
Judge = Callable[["ToolSpec", Mapping[str, Any]], "Ruling | str | None"]


class CallLog(Protocol):
    """Somebody who keeps a record of the calls."""

    def decided(
        self, call_id: str, spec: ToolSpec, arguments: Mapping[str, Any], ruling: Ruling
    ) -> None:
        """Record what was decided, before anything happens."""
        ...

    def finished(self, call_id: str, spec: ToolSpec, outcome: Outcome, seconds: float) -> None:
        """Record how an allowed call ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Everything a session needs and never changes."""

    root: Path  # resolved; the folder the tools work in
    scratch: Path  # for full outputs; tools make it when they need it
    tools: Callable[[], Sequence[Tool]]  # in the order they are listed; called once, late
    version: str  # kage's own
    rules: Judge | None = None  # the person's deny and ask rules; None lets everything through
    confirm: bool = False  # every write and exec call asks through the client
    log: CallLog | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: AGENT)  # extra, for the shell
    instructions: str = ""  # what the client is told about the server

    def offered(self) -> Sequence[Tool]:
        """Make the tools.

        Raises:
            KageError: one of them cannot be made.
        """
        return self.tools()

    def rule(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Ruling:
        """Judge one call."""
        found = self.rules(spec, arguments) if self.rules is not None else None
        if isinstance(found, str):
            return Ruling(verdict="deny", reason=found)
        ruling = found or ALLOW
        if self.confirm and ruling.verdict == "allow" and spec.risk in {"write", "exec"}:
            return Ruling(verdict="ask", rule="--confirm")
        return ruling
