"""The names models and logs see for servers' tools, and how a person's spellings map onto them."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping

LIMIT = 64  # the strictest model API: ^[a-zA-Z0-9_-]{1,64}$
SEPARATOR = "__"
EXPOSED = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_DIGITS = 8
_PATTERN = re.compile(r"[*?\[\]]")


def exposed_names(
    server: str, originals: Iterable[str], *, servers: Iterable[str] = ()
) -> dict[str, str]:
    """Give each original tool name of ``server`` the name the model sees.

    A name that needs no change stays as it is. One that was changed gets ``_`` and 8 digits of
    SHA-256(server, original) when it was cut or when its spelling is taken. The answer depends on
    the sets alone, never on an order, so it is the same after a restart.

    Args:
        server: The server's name, as configured.
        originals: Its tools' names as they are on the wire; doubles count once.
        servers: Every configured server's name: two that become the same prefix are told apart.
    """
    names = sorted(set(originals))
    prefix = _legal(server)
    shared = prefix != server and any(
        other != server and _legal(other) == prefix for other in servers
    )
    plain = {name: f"{prefix}{SEPARATOR}{_legal(name)}" for name in names}
    holders = Counter(plain.values())
    exact = {
        plain[name]
        for name in names
        if prefix == server and _legal(name) == name and len(plain[name]) <= LIMIT
    }
    given: dict[str, str] = {}
    taken: set[str] = set(exact)
    for name in names:
        wish = plain[name]
        unchanged = prefix == server and _legal(name) == name and len(wish) <= LIMIT
        free = holders[wish] == 1 and not shared and len(wish) <= LIMIT
        if unchanged or (free and wish not in taken):
            given[name] = wish
            taken.add(wish)
    for name in names:
        if name not in given:
            given[name] = _suffixed(plain[name], server, name, taken)
            taken.add(given[name])
    return {name: given[name] for name in names}


def exposed_name(server: str, original: str) -> str:
    """Give the name one tool has when nothing else takes its spelling."""
    return exposed_names(server, (original,))[original]


def canonical_spelling(text: str, servers: Iterable[str]) -> str:
    """Give the one spelling of a tool name, or pattern of names, a person typed.

    ``mcp__server__tool`` and ``mcp:server:tool`` become ``server__tool`` when there is such a
    server; any other text comes back unchanged. A ``*`` in the tool's part stays.
    """
    known = set(servers)
    for start, middle in (("mcp__", SEPARATOR), ("mcp:", ":")):
        if not text.startswith(start):
            continue
        server, found, tool = text.removeprefix(start).partition(middle)
        if not found or not tool or server not in known:
            continue
        if _PATTERN.search(tool):
            return f"{_legal(server)}{SEPARATOR}{tool}"
        return exposed_names(server, (tool,), servers=known)[tool]
    return text


def owners(text: str, servers: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Give (server, rest of the name) for every server a person may mean, the longest name first.

    Read are ``server__tool``, ``mcp__server__tool``, ``mcp:server:tool``, ``server/tool`` and the
    server alone, with the server's name as configured or as models see it.
    """
    found: list[tuple[str, str]] = []
    for server in sorted(set(servers), key=lambda name: (-len(name), name)):
        for name in dict.fromkeys((server, _legal(server))):
            starts = (f"{name}{SEPARATOR}", f"mcp__{name}{SEPARATOR}", f"mcp:{name}:", f"{name}/")
            found += ((server, text.removeprefix(s)) for s in starts if text.startswith(s))
            if text in (name, f"mcp__{name}", f"mcp:{name}"):
                found.append((server, ""))
    return tuple(dict.fromkeys(found))


def why_named(
    server: str, original: str, originals: Iterable[str], *, servers: Iterable[str] = ()
) -> str:
    """Say why a tool has another name for models than ``server__original``, "" when it has not."""
    plain = f"{server}{SEPARATOR}{original}"
    exposed = exposed_names(server, {*originals, original}, servers=servers)[original]
    if exposed == plain:
        return ""
    whys = []
    if (prefix := _legal(server)) != server:
        whys.append(f"models take only letters, digits, _ and -, so the server is {prefix} there")
        twin = next((s for s in sorted(servers) if s != server and _legal(s) == prefix), "")
        if twin:
            whys.append(f"the server {twin} has the same prefix, so a digest tells them apart")
    if _legal(original) != original:
        whys.append("models take only letters, digits, _ and -, and other characters become _")
    if len(plain) > LIMIT:
        whys.append(f"it would have {len(plain)} characters, and models take {LIMIT}")
    elif exposed != f"{prefix}{SEPARATOR}{_legal(original)}" and len(whys) < 2:
        whys.append("another tool of the server has that spelling, so a digest tells them apart")
    return "; ".join(dict.fromkeys(whys))


def nearest(name: str, known: Iterable[str]) -> str:
    """Give the known name most like ``name``, or "" when none is alike."""
    by_folded: Mapping[str, str] = {item.casefold(): item for item in known}
    close = difflib.get_close_matches(name.casefold(), list(by_folded), n=1, cutoff=0.5)
    return by_folded[close[0]] if close else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Give the sentence that helps after an unknown name: the nearest one, or all there are."""
    names = sorted(known)
    if close := nearest(name, names):
        return f"Did you mean {close}?"
    return f"There are: {', '.join(names)}" if names else "None is configured"


def _legal(name: str) -> str:
    return _ILLEGAL.sub("_", name)


def _suffixed(wish: str, server: str, original: str, taken: set[str]) -> str:
    digest = hashlib.sha256(
        server.encode("utf-8", "surrogatepass") + b"\0" + original.encode("utf-8", "surrogatepass")
    ).hexdigest()
    for digits in range(_DIGITS, LIMIT // 2):  # longer only when a server forges a suffix
        name = f"{wish[: LIMIT - digits - 1]}_{digest[:digits]}"
        if name not in taken:
            return name
    raise AssertionError("two different tools have the same SHA-256")
