"""Secrets that stand in an entry itself: find them, hide them, put a variable in their place."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

HIDDEN = "[hidden]"
_SIGN_IN = ("client_secret", "private_key", "idp_id_token")
_NAME = re.compile(r"(?i)token|secret|passw|api_?-?key|authorization|credential|private_?key")
_SHAPE = re.compile(
    r"(?:sk|pk|rk|ghp|gho|ghs|ghu|xox[abprs]|glpat|hf|npm|pypi|AKIA|ASIA|AIza|eyJ)[-_A-Za-z0-9.]{16,}"
    r"|github_pat_\w{20,}"
)
_FLAG = re.compile(r"--?[\w-]*(?:token|secret|passw|api-?key|credential)[\w-]*", re.IGNORECASE)
_SCHEME = re.compile(r"(?i)(bearer|basic|token)\s+(?=\S)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """One secret in plain text."""

    path: tuple[str | int, ...]  # inside the entry
    start: int  # where in the text at ``path`` it begins
    value: str
    variable: str  # a name for the variable to keep it in

    @property
    def where(self) -> str:
        """Where it stands, for a person."""
        return ".".join(str(part) for part in self.path)


def literals(name: str, entry: Mapping[str, Any]) -> tuple[Literal, ...]:
    """Find the secrets that stand in the table of the server ``name`` itself."""
    return tuple(_found(_variable(name), entry))


def without(entry: Mapping[str, Any], found: Iterable[Literal]) -> dict[str, Any]:
    """Give the entry with ``${NAME}`` in place of each secret."""
    return _replaced(entry, found, lambda one: f"${{{one.variable}}}")


def hidden(text: str, found: Iterable[Literal]) -> str:
    """Hide every one of ``found`` in a text to be shown."""
    values = {form for one in found for form in (one.value, json.dumps(one.value)[1:-1])}
    for value in sorted(values, key=len, reverse=True):
        text = re.sub(rf"(?<=[\"'\s:=]){re.escape(value)}(?=[\"'\s@&#])", HIDDEN, text)
    return text


def everywhere(data: Mapping[str, Any]) -> tuple[Literal, ...]:
    """Find the secrets in all servers and providers of a settings file."""
    mcp = data.get("mcp")
    groups = (mcp.get("servers") if isinstance(mcp, Mapping) else None, data.get("providers"))
    return tuple(
        one
        for group in groups
        for name, entry in (group.items() if isinstance(group, Mapping) else ())
        if isinstance(entry, Mapping)
        for one in literals(name, entry)
    )


def shown(entry: Mapping[str, Any], found: Iterable[Literal]) -> dict[str, Any]:
    """Give the entry with every secret hidden."""
    return _replaced(entry, found, lambda one: HIDDEN)


def _replaced(entry: Mapping[str, Any], found: Iterable[Literal], word: Any) -> dict[str, Any]:
    result = copy.deepcopy(dict(entry))
    for one in found:
        holder: Any = result
        for part in one.path[:-1]:
            holder = holder[part]
        text = str(holder[one.path[-1]])
        end = one.start + len(one.value)
        holder[one.path[-1]] = text[: one.start] + word(one) + text[end:]
    return result


def _found(prefix: str, entry: Mapping[str, Any]) -> Iterator[Literal]:
    for group in ("env", "headers"):
        held = entry.get(group)
        for key, value in held.items() if isinstance(held, Mapping) else ():
            if not isinstance(value, str) or "${" in value:
                continue
            scheme = _SCHEME.match(value) if group == "headers" else None
            start = scheme.end() if scheme else 0
            if value[start:] and (_NAME.search(key) or _SHAPE.search(value)):
                own = _variable(key) if group == "env" else f"{prefix}_TOKEN"
                yield Literal(path=(group, key), start=start, value=value[start:], variable=own)
    for key in ("args", "headers_command"):
        yield from _arguments(prefix, entry.get(key), (key,))
    oauth = entry.get("oauth")
    if isinstance(oauth, Mapping):
        command = "idp_id_token_command"
        yield from _arguments(prefix, oauth.get(command), ("oauth", command))
    for key in _SIGN_IN if isinstance(oauth, Mapping) else ():
        value = oauth.get(key) if isinstance(oauth, Mapping) else None
        if isinstance(value, str) and value and "${" not in value:
            variable = f"{prefix}_{_variable(key)}"
            yield Literal(path=("oauth", key), start=0, value=value, variable=variable)
    url = entry.get("url")
    if isinstance(url, str) and "${" not in url:
        yield from _address(prefix, url)


def _arguments(prefix: str, held: object, path: tuple[str, ...]) -> Iterator[Literal]:
    before = ""
    for index, value in enumerate(held if isinstance(held, list | tuple) else ()):
        if isinstance(value, str) and "${" not in value:
            yield from _argument(prefix, before, value, (*path, index))
        before = value if isinstance(value, str) else ""


def _argument(
    prefix: str, before: str, value: str, path: tuple[str | int, ...]
) -> Iterator[Literal]:
    flag, sign, rest = value.partition("=")
    if sign and rest and _FLAG.fullmatch(flag):
        variable = _variable(flag.lstrip("-"))
        yield Literal(path=path, start=len(flag) + 1, value=rest, variable=variable)
    elif _FLAG.fullmatch(before) and value and not value.startswith("-"):
        yield Literal(path=path, start=0, value=value, variable=_variable(before.lstrip("-")))
    elif match := _SHAPE.search(value):
        variable = f"{prefix}_TOKEN"
        yield Literal(path=path, start=match.start(), value=match[0], variable=variable)


def _address(prefix: str, url: str) -> Iterator[Literal]:
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return
    if password:
        start = url.index(f":{password}@") + 1
        yield Literal(path=("url",), start=start, value=password, variable=f"{prefix}_PASSWORD")
        return
    for pair in parts.query.split("&"):
        key, _, value = pair.partition("=")
        if value and (_NAME.search(key) or key.lower() in {"key", "auth"}):
            start = url.index(f"{key}={value}") + len(key) + 1
            yield Literal(path=("url",), start=start, value=value, variable=f"{prefix}_TOKEN")
            return


def _variable(name: str) -> str:
    found = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").upper()
    return f"_{found}" if found[:1].isdigit() else found or "SECRET"
