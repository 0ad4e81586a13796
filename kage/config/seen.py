"""What a person sees of an entry that would start a process or open a connection, and its digest.

Values stand as they are written: a variable is named, never put in.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kage.config.schema import ServerSpec
from kage.core.canonical import NotCanonical, digest
from kage.core.sandbox import MEANING
from kage.core.trust import Change

_STARTS = (
    "transport", "command", "args", "cwd", "url", "env", "env_pass", "headers", "headers_command",
    "auth", "oauth",
)  # fmt: skip
_GUARDS = ("pin", "safety_level", "allow_sampling")  # what loosens the gate for this server
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)")
_LOADERS = re.compile(
    r"(?i)LD_|DYLD_|NODE_OPTIONS|PYTHONPATH|PYTHONSTARTUP|PYTHONHOME|PERL5|RUBYOPT|BASH_ENV|ENV"
    r"|JAVA_TOOL_OPTIONS|GIT_SSH|PATH"
)


def seen(spec: ServerSpec, *, program: str = "", folder: str = "") -> dict[str, str]:
    """Give every part of ``spec`` that decides what happens, by a name for it.

    Args:
        program: The file its command resolves to.
        folder: Where it would run.
    """
    parts: dict[str, str] = {"transport": spec.transport}
    if spec.command:
        parts["command"] = shlex.join((spec.command, *spec.args))
        parts["program"] = program or "(not found)"
        parts["cwd"] = folder or spec.cwd
    if spec.sandbox != "none":
        parts["sandbox"] = f"{spec.sandbox}: {MEANING[spec.sandbox]}"
        if spec.sandbox_write:
            parts["sandbox_write"] = shlex.join(spec.sandbox_write)
    if spec.url:
        parts["url"] = spec.url
    parts |= {f"env {name}": value for name, value in spec.env.items()}
    if spec.env_pass:
        parts["env_pass"] = " ".join(spec.env_pass)
    parts |= {f"header {name}": value for name, value in spec.headers.items()}
    if spec.headers_command:
        parts["headers_command"] = shlex.join(spec.headers_command)
    if spec.url and spec.auth != "auto":
        parts["auth"] = spec.auth
    for field in dataclasses.fields(spec.oauth):
        value = getattr(spec.oauth, field.name)
        if value != field.default:
            parts[f"oauth {field.name}"] = (
                shlex.join(value) if isinstance(value, tuple) else str(value)
            )
    return {safe(name): safe(value) for name, value in parts.items()}


def changes(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[Change, ...]:
    """Give every part that differs, in the order of ``new``; what is gone comes last."""
    names = dict.fromkeys((*new, *old))
    return tuple(
        Change(part=name, old=old.get(name, ""), new=new.get(name, ""))
        for name in names
        if old.get(name) != new.get(name)
    )


def variables(spec: ServerSpec) -> tuple[str, ...]:
    """Give every variable of kage's environment that the entry reads, sorted."""
    named = {name for text in _texts(_written(spec)) for name in _VARIABLE.findall(text)}
    return tuple(sorted(named | set(spec.env_pass)))


def warnings(spec: ServerSpec, *, program: str = "") -> tuple[str, ...]:
    """Say what deserves a second look before the entry is trusted."""
    found = []
    if program and spec.origin.startswith("/") and _inside(program, spec.origin):
        found.append(
            "The program lies inside the project: what it does can change while this entry "
            "stays the same."
        )
    found += [
        f"{name} can make the program load other code."
        for name in spec.env
        if _LOADERS.match(name) and (name.upper() in ("ENV", "PATH") or not name.islower())
    ]
    if spec.url.startswith("http:"):
        found.append("The address is not encrypted: everyone on the way can read and change it.")
    return tuple(found)


def written_hash(spec: ServerSpec) -> str:
    """Digest the entry as it is written, apart from where and from the surroundings."""
    written = {**_written(spec), "name": spec.name}
    try:
        return digest(written)
    except NotCanonical:  # half a surrogate pair, say
        return digest({"text": safe(repr(written))})


def safe(text: str) -> str:
    """Make ``text`` something every file can hold: no half surrogate pairs."""
    return text.encode("utf-8", "backslashreplace").decode()


def _written(spec: ServerSpec) -> dict[str, Any]:
    caged = ("sandbox", "sandbox_write") if spec.sandbox != "none" else ()
    return {name: _plain(getattr(spec, name, None)) for name in (*_STARTS, *_GUARDS, *caged)}


def _plain(value: Any) -> Any:
    """Give ``value`` as JSON holds it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(item) for name, item in dataclasses.asdict(value).items()}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)


def _inside(program: str, folder: str) -> bool:
    real = Path(os.path.realpath(program))
    return real.is_relative_to(os.path.realpath(folder))
