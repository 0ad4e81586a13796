"""Turn the table of one MCP server, or of ``[mcp]``, into what ``schema`` calls it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from kage.config import server_keys
from kage.config.schema import (
    BUILTIN_NAMES,
    OUTPUT,
    SERVER_NAME,
    OAuthSpec,
    RestartSpec,
    ServerSpec,
)
from kage.config.tables import Table, nearest
from kage.core.sandbox import is_looser

LAZY_IDLE_TIMEOUT = 300.0
_SECRETIVE = re.compile(r"(?i)token|secret|passw|api_?key|authorization|credential")
OWN_ONLY = {  # what neither a project's file nor an imported one may say
    "env_pass": "only your own config.toml may pass variables on",
    "headers_command": "only your own config.toml may start a program for headers",
    "locked": "only your own config.toml may lock an entry",
    "allow_sampling": "only your own config.toml may let a server ask the model",
    "sampling_max_tokens": "only your own config.toml may set what a server may ask for",
    "sampling_requests": "only your own config.toml may set what a server may ask for",
    "sampling_budget": "only your own config.toml may set what a server may ask for",
    "roots": "only your own config.toml may tell a server of more folders",
    "pin": "only your own config.toml may say what a changed tool does",
    "sandbox_write": "only your own config.toml may open folders to a sandbox",
}
OWN_ONLY_OAUTH = {
    "idp_id_token_command": "only your own config.toml may start a program for a token",
}
_PROJECT_OAUTH = ("client_id", "scopes", "redirect_port", "client_metadata_url")
_ASSERTION_NEEDS = (
    "issuer",
    "client_id",
    "client_secret",
    "idp_token_endpoint",
    "idp_client_id",
)
_ID_TOKENS = ("idp_id_token", "idp_id_token_command")
_OF_A_PROCESS = ("args", "env", "env_pass", "cwd", "sandbox", "sandbox_write")
_DEFAULTABLE = {key.target for key in server_keys.MCP} & {
    field.name for field in dataclasses.fields(ServerSpec)
} - {"restart"}

Defaults = Mapping[str, Any]  # values of ServerSpec's fields


def read_defaults(table: Table, weaker: Defaults) -> dict[str, Any]:
    """Read what ``[mcp]`` says for every server, on top of ``weaker``."""
    found = table.read(server_keys.MCP)
    defaults = dict(weaker)
    for key in server_keys.MCP:
        if key.name in found and key.target in _DEFAULTABLE:
            defaults[key.target] = found[key.name]
    restart: dict[str, Any] = {}
    if "auto_reconnect" in found:
        restart["enabled"] = found["auto_reconnect"]
    if "max_reconnect_attempts" in found:
        restart["max_attempts"] = found["max_reconnect_attempts"]
    base = dataclasses.replace(weaker.get("restart", RestartSpec()), **restart)
    defaults["restart"] = _restart(table, base)
    defaults["output"] = _output(table, weaker)
    return defaults


def read_server(table: Table, name: str, *, origin: str, defaults: Defaults) -> ServerSpec | None:
    """Read one entry; None when something in it is wrong, which is then reported.

    A server that would run differently from what was written is worse than one that does not
    run, so an entry with any mistake is left out whole.
    """
    problem = bad_name(name)
    if problem:
        table.fault(problem, expected="letters, digits, . - and single _, at most 32 characters")
    found = table.read(server_keys.SERVER)
    output = _output(table, defaults)
    project = origin != "user"
    if project:
        _check_project(table, found, defaults)
    found["disabled"] = _disabled(table, found)
    found["transport"] = _transport(table, found)
    restart = _restart(table, defaults.get("restart", RestartSpec()))
    oauth = _oauth(table, project=project)
    if not table.sound:
        return None
    _advise(table, found)
    fields = {key.target: found[key.name] for key in server_keys.SERVER if key.name in found}
    settings = {**defaults, **fields, "restart": restart, "oauth": oauth, "output": output}
    settings.pop("enabled", None)
    if settings.get("start") == "lazy":
        settings.setdefault("idle_timeout", LAZY_IDLE_TIMEOUT)
    if settings["transport"] != "stdio":
        settings.pop("sandbox", None)  # a default of [mcp]: no process is started
    if project:
        settings["safety_level"] = "dangerous"  # a default of the person's is not the project's
        settings["allow_sampling"] = False
        settings["pin"] = "ask"
    return ServerSpec(name=name, origin=origin, place=table.place, **settings)


def bad_name(name: str) -> str:
    """Say what is wrong with a server's name, "" when nothing is."""
    if name in BUILTIN_NAMES:
        return "is the name of a built-in tool"
    if not SERVER_NAME.fullmatch(name):
        return "is no name for a server"
    return ""


def _disabled(table: Table, found: Mapping[str, Any]) -> bool:
    disabled, enabled = found.get("disabled"), found.get("enabled")
    if disabled is not None and disabled == enabled:
        table.fault(
            "disagrees with disabled",
            key="enabled",
            expected="one of the two",
            got=str(enabled).lower(),
        )
    return bool(disabled) if disabled is not None else enabled is False


def _transport(table: Table, found: Mapping[str, Any]) -> str:
    """Check the keys against each other and say how the server is reached."""
    command, url = "command" in table.data, "url" in table.data
    spelled = found.get("transport")
    given = server_keys.TRANSPORTS[spelled] if spelled else ""
    written = next((name for name in ("transport", "type") if name in table.data), "transport")
    if command and url:
        table.fault("stands beside command", key="url", expected="one of the two")
    elif not command and not url:
        # a misspelt one has been reported already
        if not any(nearest(name, ("command", "url")) for name in table.data):
            missing = "url" if given in {"http", "sse"} else "command"
            table.fault(f"has no {missing}", expected="command or url")
    elif given == "stdio" and url:
        table.fault("does not fit url", key=written, expected='"http" or "sse"', got='"stdio"')
    elif given in {"http", "sse"} and command:
        table.fault("does not fit command", key=written, expected='"stdio"', got=f'"{given}"')
    for key in _OF_A_PROCESS if url and not command else ():
        if found.get(key):
            table.fault("does not fit url: no process is started", key=key)
    for key in ("headers", "headers_command") if command and not url else ():
        if found.get(key):
            table.fault("does not fit command", key=key, expected="env, or url")
    return given or ("http" if url else "stdio")


def _restart(table: Table, base: RestartSpec) -> RestartSpec:
    child = table.child("restart", "reconnect")
    if child is None:
        return base
    data = dict(child.data)
    milliseconds = data.pop("delayMs", None) if table.document.json else None
    if milliseconds is not None:  # the spelling of other hosts: one fixed delay
        number = isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool)
        if number and 0 <= milliseconds <= 1e9:
            data["delay"] = data["max_delay"] = f"{int(milliseconds)}ms"
        else:
            child.fault("is not usable", key="delayMs", expected="milliseconds")
    reader = Table(child.document, data, child.report, child.path, foreign=child.foreign)
    found = reader.read(server_keys.RESTART)
    if "delay" in found and "max_delay" not in found:
        found["max_delay"] = max(found["delay"], base.max_delay)
    spec = dataclasses.replace(base, **found)
    if spec.max_delay < spec.delay:
        reader.fault("is shorter than delay", key="max_delay")
    table.sound = table.sound and child.sound and reader.sound
    return spec


def _oauth(table: Table, *, project: bool) -> OAuthSpec:
    child = table.child("oauth")
    if child is None:
        return OAuthSpec()
    if "url" not in table.data:
        table.fault("does not fit command", key="oauth", expected="url")
    found = child.read(server_keys.OAUTH)
    _check_grant(child, found)
    for key, value in found.items() if project else ():
        if key not in _PROJECT_OAUTH or "${" in str(value):
            child.fault("is not allowed in a project file: only your own may say it", key=key)
    table.sound = table.sound and child.sound
    return OAuthSpec(**found)


def _check_grant(child: Table, found: Mapping[str, Any]) -> None:
    machine = found.get("grant") == "client_credentials"
    if machine and not found.get("client_id"):
        child.fault("needs client_id", key="grant")
    if machine and not (found.get("client_secret") or found.get("private_key")):
        child.fault("needs client_secret or private_key", key="grant")
    if found.get("private_key") and not machine:
        place = child.document.place((*child.path, "private_key"))
        child.report.note(f'{place}: private_key counts only with grant = "client_credentials"')
    if found.get("client_secret") and not found.get("client_id"):
        child.fault("needs client_id", key="client_secret")
    if found.get("grant") == "identity_assertion":
        missing = [key for key in _ASSERTION_NEEDS if not found.get(key)]
        tokens = [key for key in _ID_TOKENS if found.get(key)]
        if not tokens:
            missing.append(" or ".join(_ID_TOKENS))
        if len(tokens) == len(_ID_TOKENS):
            child.fault("stands beside idp_id_token", key=tokens[1], expected="one of the two")
        if missing:
            child.fault(f"needs {', '.join(missing)}", key="grant")


def _output(table: Table, weaker: Defaults) -> dict[str, str]:
    """Read where results go: one word for every kind, or a table, which leaves the rest alone."""
    output: dict[str, str] = dict(weaker.get("output", OUTPUT))
    value = table.data.get("output")
    if isinstance(value, str):
        if value not in {"model", "artifact"}:
            table.fault("is not known", key="output", expected='"model" or "artifact"')
        return dict.fromkeys(server_keys.OUTPUT_KINDS, value)
    child = table.table("output") if value is not None else None
    if child is not None:
        output |= child.read(server_keys.OUTPUT)
        table.sound = table.sound and child.sound
    return output


def _check_project(table: Table, found: Mapping[str, Any], defaults: Defaults) -> None:
    for key, reason in OWN_ONLY.items():
        if found.get(key):
            table.fault(f"is not allowed in a project file: {reason}", key=key)
    least = defaults.get("sandbox", "none")
    if is_looser(found.get("sandbox", least), least):
        table.fault(
            "is not allowed in a project file: a project may only ask for a stricter one",
            key="sandbox",
            expected=f'"{least}" or stricter',
        )
    if found.get("safety_level", "dangerous") != "dangerous":
        table.fault(
            "is not allowed in a project file: a project may only add friction",
            key="safety_level",
            expected='"dangerous"',
        )


def _advise(table: Table, found: Mapping[str, Any]) -> None:
    """Point out secrets that stand in the file itself."""
    for group in ("env", "headers"):
        for name, value in found.get(group, {}).items():
            if value and "${" not in value and _SECRETIVE.search(name):
                table.report.advice.append(
                    f"{table.document.place((*table.path, group, name))}: {group}.{name} holds its "
                    "value in plain text; keep it in an environment variable and write ${NAME}"
                )
