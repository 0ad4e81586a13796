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
