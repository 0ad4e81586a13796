"""The one spelling of a permission rule, and which tools it is about."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from kage.config.schema import BUILTIN_NAMES, SERVER_NAME
from kage.core.errors import UsageError
from kage.core.sanitise import clip, visible
from kage.core.tools import ToolSpec
from kage.mcp.names import EXPOSED, LIMIT, SEPARATOR
from kage.permissions.rules import glob
from kage.permissions.rules.places import argument_globs

HOST_TOOLS = (*BUILTIN_NAMES, "mcp_status", "mcp_tools")

_RULE = re.compile(r"([^()]*)(?:\((.*)\))?", re.DOTALL)
_PART = re.compile(r"[^\s()]+")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_EXAMPLES = "Write it like bash(git status *), filesystem__read_file or filesystem__*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A tool, or a server's tools by glob, and what the call must look like.

    ``str()`` gives the one spelling: config, ``--allow``, panel and log all use it.
    """

    tool: str  # "bash", "filesystem__read_file", "filesystem__read_*"
    pattern: str = ""  # "" = every call

    def __str__(self) -> str:
        return f"{self.tool}({self.pattern})" if self.pattern else self.tool

    @property
    def server(self) -> str:
        """The server's name as written, "" for a tool of kage."""
        server, found, _ = self.tool.partition(SEPARATOR)
        return server if found else ""

    @property
    def rank(self) -> tuple[bool, int, int]:
        """How specific the rule is; the greater one is named."""
        exact = glob.literal(self.tool) is not None
        return exact, glob.weight(self.pattern), glob.weight(self.tool)

    def names(self, tool: ToolSpec, servers: Collection[str], *, strictly: bool) -> bool:
        """Say whether the rule is about ``tool``.

        A tool's key is (server, original name); the exposed name is another way to write it.
        ``strictly`` is for rules that allow: where a spelling could mean two tools, it means none.
        """
        if not self.server or tool.server is None:
            return tool.server is None and not self.server and tool.name == self.tool
        written, _, rest = self.tool.partition(SEPARATOR)
        server, original = tool.server.server, tool.server.original
        if written != server:
            if written != legal(server):
                return not strictly and self.tool == tool.name
            others = [name for name in servers if name != server and legal(name) == written]
            if others and strictly:
                return self.tool == tool.name
        shown = tool.name.partition(SEPARATOR)[2]
        if glob.literal(rest) is None or not strictly:
            return glob.matches(rest, shown) or glob.matches(rest, original)
        plain = EXPOSED.fullmatch(original) and len(f"{server}{SEPARATOR}{original}") <= LIMIT
        return rest == shown or (rest == original and not plain)


def parse_rule(text: str, *, servers: Collection[str] = ()) -> Rule:
    """Read a rule in any accepted spelling.

    ``mcp__server__tool`` and ``mcp:server:tool`` become ``server__tool``.

    Raises:
        UsageError: it is malformed; nothing is guessed.
    """
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise _malformed(text, "the brackets do not close at the end")
    tool, pattern = _tool(match[1].strip(), text, servers), match[2]
    if pattern is None:
        return Rule(tool=tool)
    return rule_for(tool, pattern, text=text)


def rule_for(tool: str, pattern: str, *, text: str = "") -> Rule:
    """Make a rule of a tool's canonical name and a pattern, as a config table splits them.

    Raises:
        UsageError: the pattern is empty, or no ``argument=glob`` for a server's tool.
    """
    text = text or f"{tool}({pattern})"
    if not pattern.strip():
        raise _malformed(text, "the pattern is empty")
    if pattern.strip() in ("*", "**"):
        return Rule(tool=tool)
    if SEPARATOR in tool and argument_globs(pattern) is None:
        raise _malformed(text, "a pattern for a server's tool is argument=glob, several by comma")
    return Rule(tool=tool, pattern=pattern)


def tool_name(text: str, *, servers: Collection[str] = ()) -> str:
    """Give the canonical spelling of the tool part of a rule.

    Raises:
        UsageError: it is malformed.
    """
    return _tool(text.strip(), text, servers)


def legal(server: str) -> str:
    """Give the prefix the tools of ``server`` carry."""
    return _ILLEGAL.sub("_", server)


def _tool(name: str, text: str, servers: Collection[str]) -> str:
    name = _own_spelling(name, text, servers)
    if not _PART.fullmatch(name):
        raise _malformed(text, "the tool's name is missing or has blanks in it")
    server, found, rest = name.partition(SEPARATOR)
    if not found:
        if glob.literal(name) is None:
            raise _malformed(text, "a wildcard never crosses servers; name the server first")
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise _malformed(text, "that is no tool's name")
        return name
    if glob.literal(server) is None:
        raise _malformed(text, "a wildcard never crosses servers; write the server's name in full")
    if not SERVER_NAME.fullmatch(server):
        raise _malformed(text, f"{server or 'nothing'} is no server's name")
    if not rest:
        raise _malformed(text, f"the tool is missing; {server}__* means all of them")
    return name


def _own_spelling(name: str, text: str, servers: Collection[str]) -> str:
    """Turn ``mcp:s:t`` and ``mcp__s__t`` into ``s__t``; a server may itself be called mcp."""
    if name.startswith("mcp:"):
        server, found, tool = name.removeprefix("mcp:").partition(":")
        if not found:
            raise _malformed(text, "it should be mcp:server:tool")
        return f"{server}{SEPARATOR}{tool}"
    if not name.startswith("mcp__"):
        return name
    rest = name.removeprefix("mcp__")
    server, found, _ = rest.partition(SEPARATOR)
    if not found:
        return name
    if "mcp" in servers:
        if server in servers:
            raise _malformed(text, f"it could mean the server mcp or the server {server}")
        return name
    return rest


def _malformed(text: str, why: str) -> UsageError:
    shown = clip(visible(text, single_line=True), 200)
    return UsageError(f"The rule {shown!r} is malformed", why=why, fix=_EXAMPLES)
