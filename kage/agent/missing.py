"""What the model reads when it calls a tool that is not there: the names it may have meant."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable

from kage.core.sanitise import clip

MAX_NAME = 100  # characters of a name no tool has that are looked at and told
_LOOKED_AT = 300  # names compared letter by letter, which is slow
_NEAR = 3
_PARTS = re.compile(r"[A-Za-z0-9]+")


def no_such_tool(name: str, tools: Iterable[str]) -> str:
    """Say that there is no tool ``name``, and which of ``tools`` look like it."""
    short = name[:MAX_NAME]  # a model writes names of any length
    near = _near(short, list(tools))
    hint = f" Did you mean {', '.join(near)}?" if near else ""
    return f"There is no tool {clip(name, MAX_NAME)!r} now, so nothing was called.{hint}"


def _near(name: str, tools: list[str]) -> list[str]:
    from difflib import get_close_matches

    bare = [tool for tool in tools if tool.partition("__")[2] == name]
    if bare:  # all that is missing is the server
        return bare[:_NEAR]
    if len(tools) > _LOOKED_AT:
        words = {word.lower() for word in _PARTS.findall(name)}
        tools = heapq.nlargest(
            _LOOKED_AT, tools, key=lambda tool: len(words & {*_PARTS.findall(tool.lower())})
        )
    return get_close_matches(name, tools, n=_NEAR)
