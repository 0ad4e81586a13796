"""What the configuration means once it is read: one frozen dataclass per table.

Durations are seconds; 0 means off or unlimited where a comment says so. ``load.py`` turns files
into these, ``expand.py`` puts variables in when a server starts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kage.core.sandbox import SandboxLevel

SERVER_NAME = re.compile(r"(?!.*__)(?=.{1,32}$)[A-Za-z0-9][A-Za-z0-9.-]*(_[A-Za-z0-9.-]+)*")
BUILTIN_NAMES = ("read", "write", "edit", "bash", "ls", "find", "grep", "web_fetch")

OUTPUT = {"resource": "artifact"}  # kinds of content that do not go to the model by default

Wish = Literal["ask", "allow", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a value stands, for messages."""

    file: Path
    line: int  # 1-based, 0 = unknown

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else str(self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartSpec:
    """How a server that went away is brought back."""

    enabled: bool = True
    max_attempts: int = 5
    delay: float = 1.0
    max_delay: float = 30.0
    exclusive: bool = False  # stop the old one first: it holds a lock or a port


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSpec:
    """What signing in to an HTTP server needs that the server does not say itself."""

    client_id: str = ""  # "" = register, or use client_metadata_url
    client_secret: str = ""
    scopes: tuple[str, ...] = ()  # () = what the server names
    redirect_port: int = 0  # 0 = any free one
    client_metadata_url: str = ""
    issuer: str = ""  # "" = the one the server names
    grant: Literal["authorization_code", "client_credentials", "identity_assertion"] = (
        "authorization_code"
    )
    private_key: str = ""  # PEM; client_credentials only
    signing_algorithm: str = "RS256"
    idp_token_endpoint: str = ""  # of the enterprise's identity provider; identity_assertion only
    idp_client_id: str = ""  # what kage is called there
    idp_id_token: str = ""  # what it says about the person
    idp_id_token_command: tuple[str, ...] = ()  # argv; prints it, run for each exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """One server entry, variables not yet expanded."""

    name: str
    origin: str = "user"  # "user", a project's real path, or "plugin:<name>"
    place: Place | None = None
    transport: Literal["stdio", "http", "sse"] = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    cwd: str = ""  # "" = the workspace
    env: Mapping[str, str] = field(default_factory=dict)
    env_pass: tuple[str, ...] = ()
    sandbox: SandboxLevel = "none"
    sandbox_write: tuple[str, ...] = ()  # folders besides the workspace
    env_hidden: tuple[str, ...] = ()  # variables with model keys, which env_pass never copies
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    headers_command: tuple[str, ...] = ()  # argv; prints headers, run at connect and on a 401
    auth: Literal["auto", "oauth", "none"] = "auto"
    sse_fallback: bool = True
    oauth: OAuthSpec = field(default_factory=OAuthSpec)
    disabled: bool = False
    required: bool = False
    start: Literal["eager", "lazy"] = "eager"
    idle_timeout: float = 0.0  # 0 = never
    timeout: float = 30.0  # connect and listing
    tool_timeout: float = 60.0  # idle time of one call
    tool_timeouts: Mapping[str, float] = field(default_factory=dict)  # by original tool name
    tool_max_time: float = 600.0  # hard cap of one call
    health_interval: float = 30.0  # 0 = off
    max_parallel_calls: int = 8
    max_message_bytes: int = 32 << 20
    max_output_tokens: int = 25_000
    output: Mapping[str, str] = field(default_factory=lambda: dict(OUTPUT))  # "model", "artifact"
    fetch_resource_links: bool = False
    max_tools: int = 0  # 0 = no limit
    enabled_tools: tuple[str, ...] = ("*",)
    disabled_tools: tuple[str, ...] = ()
    safety_level: Literal["safe", "moderate", "dangerous"] = "dangerous"
    stderr: Literal["inherit", "log", "null"] = "inherit"
    protocol: Literal["auto", "legacy", "2026-07-28"] = "auto"
    restart: RestartSpec = field(default_factory=RestartSpec)
    pin: Literal["ask", "warn", "off"] = "ask"
    instructions: bool = True  # whether the server's instructions reach the model
    allow_sampling: bool | Literal["tools"] = False
    sampling_max_tokens: int = 4096  # of one answer; 0 = no limit, as below
    sampling_requests: int = 20  # in one session
    sampling_budget: int = 100_000  # tokens read and written in one session
    roots: tuple[str, ...] | None = ()  # besides the workspace; None: told none at all
    log_level: str = ""  # "" = nothing is asked for
    locked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSpec:
    """One model endpoint."""

    name: str
    kind: Literal["anthropic", "openai"]
    base_url: str = ""  # "" = the vendor's own
    api_key_env: str = ""  # the variable's name, never the key
    models: tuple[str, ...] = ()  # () = ask the endpoint
    context_window: int = 0  # tokens; 0 = from the catalogue
    max_tokens: int = 0  # of one reply; 0 = from the catalogue
    headers: Mapping[str, str] = field(default_factory=dict)
    price_input: float = 0.0  # US dollars per million tokens; 0 = from the catalogue
    price_output: float = 0.0
    thinking: int = 0  # tokens the model may think; 0 = off
    place: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRules:
    """The patterns for one tool, or a glob over tools, as the person wrote them."""

    tool: str  # exposed name, "<server>__*", or a built-in
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    default: Wish | None = None
    place: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionSpec:
    """The ``[permissions]`` tables, merged; project files can only add deny and ask."""

    mode: Literal["default", "ask", "deny"] = "default"
    servers: Mapping[str, Wish] = field(default_factory=dict)
    tools: tuple[ToolRules, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What ends a run."""

    max_turns: int = 100  # 0 = none
    max_cost: float = 0.0  # US dollars per run, 0 = none
    max_output_tokens: int = 25_000  # of one built-in's result


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """What the agent's shell may touch, and what no sandboxed process may read."""

    bash: SandboxLevel = "none"
    write: tuple[str, ...] = ()  # by the shell, besides the workspace
    hide: tuple[str, ...] = ()  # besides kage's own folders and where keys are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoSpec:
    """What is kept to undo calls."""

    snapshots: bool = True  # look at the workspace around calls that can do anything
    keep_mb: int = 256  # of former bytes per session, 0 = none


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything read from all layers."""

    model: str = ""  # "provider:name", "" = choose
    theme: str = ""
    providers: Mapping[str, ProviderSpec] = field(default_factory=dict)
    mcp_enabled: bool = True
    defer_tools: Literal["auto", "always", "never"] = "auto"
    token_store: Literal["file", "keyring"] = "file"
    servers: Mapping[str, ServerSpec] = field(default_factory=dict)
    permissions: PermissionSpec = field(default_factory=PermissionSpec)
    limits: Limits = field(default_factory=Limits)
    sandbox: SandboxSpec = field(default_factory=SandboxSpec)
    undo: UndoSpec = field(default_factory=UndoSpec)
    keys: Mapping[str, str] = field(default_factory=dict)
    project_servers: tuple[ServerSpec, ...] = ()  # would replace one of ``servers``, once trusted
    notes: tuple[str, ...] = ()  # what the person should know about the files, in words
