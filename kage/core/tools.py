"""What a tool is to the rest of kage: a spec, and something that runs one approved call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from kage.core.content import Content, Text
from kage.core.messages import Outcome
from kage.core.redact import Redactor

if TYPE_CHECKING:
    from kage.core.undo import Keeper


class Risk(StrEnum):
    """What a tool can do; decides the default answer of the gate."""

    READ = "read"
    WRITE = "write"
    EXEC = "exec"
    NETWORK = "network"


class SubjectKind(StrEnum):
    """What the patterns of a permission rule are matched against."""

    COMMAND = "command"  # a shell line, judged command by command
    PATH = "path"  # resolved against the workspace first
    URL = "url"  # normalised first
    ARGUMENTS = "arguments"  # argument=glob over top-level arguments (MCP, plugins)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Which argument a person would read to judge a call."""

    kind: SubjectKind
    argument: str = ""
    default: str = ""


LONGEST = {SubjectKind.PATH: 4_096, SubjectKind.URL: 8_192, SubjectKind.COMMAND: 120_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a server says about its tool; shown with the word "claims", never used by the gate."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTool:
    """Where an MCP tool comes from; grants are bound to all of it (DESIGN section 6)."""

    server: str
    origin: str  # "user", a project's real path, or a plugin
    original: str  # the name on the wire
    entry_hash: str
    pin: str  # digest of name, title, description, schemas, annotations
    connection: str  # the live connection that would carry the call
    claims: Claims = Claims()


@dataclass(frozen=True, slots=True, kw_only=True)
class Handling:
    """What becomes of a tool's results; ``output`` says per kind "model" or "artifact"."""

    max_output_tokens: int = 0  # 0 = as for built-in tools
    output: Mapping[str, str] = field(default_factory=dict)  # by text, image, audio, resource


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as the model, the gate and the screen see it."""

    name: str  # the exposed name
    description: str  # what the model reads
    schema: Mapping[str, Any]  # raw JSON Schema of the arguments; its root is an object
    risk: Risk
    subject: Subject = Subject(kind=SubjectKind.ARGUMENTS)
    title: str = ""
    server: ServerTool | None = None  # None: built in
    output_schema: Mapping[str, Any] | None = None
    handling: Handling = Handling()
    safety: Literal["", "safe", "moderate", "dangerous"] = ""  # the person's word about its server
    sandbox: str = ""  # the level of the one it runs in, for screens
    full_description: str = ""  # for screens, where ``description`` was cut for the model


def overlong(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Say that a path, address or command is longer than anything takes, "" when it is not.

    Asked before rules take it apart, which costs time that grows with it.
    """
    raw = arguments.get(spec.subject.argument)
    most = LONGEST.get(spec.subject.kind)
    if most is None or not isinstance(raw, str) or len(raw) <= most:
        return ""
    return f"the {spec.subject.argument} is {len(raw):,} characters long, and the limit is {most:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool gave back, before it is cut to the model's limit."""

    content: tuple[Content, ...]
    outcome: Outcome = Outcome.OK
    structured: Any = None  # structuredContent: any JSON value
    summary: str = ""  # a few words for the row
    diff: str = ""  # unified diff, for edits

    @classmethod
    def error(cls, text: str, *, outcome: Outcome = Outcome.TOOL_ERROR) -> ToolResult:
        """Make a failed result whose text the model reads."""
        return cls(content=(Text(text),), outcome=outcome)


def _ignore_progress(progress: float, total: float | None, message: str) -> None:
    pass


def _ignore_output(text: str) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One approved call on its way into a tool.

    ``roots`` are the only places a file tool may touch: the workspace, and a path outside it
    that the gate let through for this very call. ``scratch`` is a folder for full outputs; a
    tool creates it when it first needs it.
    """

    call_id: str
    arguments: Mapping[str, Any]  # JSON, valid against the schema
    workspace: Path
    roots: tuple[Path, ...]
    scratch: Path
    progress: Callable[[float, float | None, str], None] = _ignore_progress
    output: Callable[[str], None] = _ignore_output  # live text, for the row
    environment: Mapping[str, str] = field(default_factory=dict)  # extra, for the agent's shell
    keeper: Keeper | None = None  # takes what a file tool replaces
    redact: Redactor = field(default_factory=Redactor)  # for what a tool cuts or keeps in files


class Tool(Protocol):
    """Something the model can call."""

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        ...

    async def run(self, call: Invocation) -> ToolResult:
        """Run one approved call; cancelling the task must stop the work.

        Raises:
            ToolError: what the model reads as a failed result.
        """
        ...


@runtime_checkable
class Previews(Protocol):
    """A tool that can say what a call would change, for the approval panel."""

    async def preview(self, call: Invocation) -> str:
        """Give a unified diff, or "" when there is nothing to show."""
        ...
