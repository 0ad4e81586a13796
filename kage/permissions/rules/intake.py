"""Turn the ``[permissions]`` tables into rules; what cannot be read is closed, never open."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kage.config.schema import ToolRules, Wish
from kage.core.errors import ConfigFault, UsageError
from kage.permissions.rules.rule import Rule, legal, rule_for, tool_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One rule somebody wrote, and where."""

    rule: Rule
    wish: Wish
    source: str  # "config.toml:12", "--allow"
    command_line: bool = False  # --allow: about this kage only, whatever the server's origin
    everywhere: bool = False  # it cannot be read, so it is about every call


class Intake:
    """Turns tables into entries and collects what is wrong with them."""

    def __init__(self, *, servers: frozenset[str], tools: frozenset[str]) -> None:
        self.servers = servers
        self.tools = tools
        self.entries: list[Entry] = []
        self.defaults: list[Entry] = []
        self.faults: list[ConfigFault] = []
        self.notes: list[str] = []

    def table(self, table: ToolRules) -> None:
        """Take one ``[permissions.tools.X]`` table."""
        source = str(table.place) if table.place else "the settings"
        key = f"permissions.tools.{table.tool}"
        try:
            tool = tool_name(table.tool, servers=self.servers)
            self.check_tool(tool)
        except UsageError as error:
            self._fault(table, key, error)
            if table.deny or table.ask or table.default in ("deny", "ask"):
                self._closed(table.tool, source)
            return
        for wish, patterns in self._lists(table):
            for pattern in patterns:
                try:
                    rule = rule_for(tool, pattern)
                except UsageError as error:
                    self._fault(table, f"{key}.{wish}", error)
                    if wish == "allow":
                        continue
                    rule = Rule(tool=tool)
                self.entries.append(Entry(rule=rule, wish=wish, source=source))
        if table.default is not None:
            rule = Rule(tool=tool)
            self.defaults.append(Entry(rule=rule, wish=table.default, source=source))

    def check_server(self, name: str) -> None:
        """Note a wish about a server nobody configured."""
        if name not in self.servers:
            self.notes.append(f"[permissions] speaks of the server {name}, which is not configured")

    def check_tool(self, tool: str) -> None:
        """Note a server nobody configured.

        Raises:
            UsageError: it is neither one of kage's own tools nor spelled like a server's.
        """
        rule = Rule(tool=tool)
        if rule.server:
            if rule.server not in {*self.servers, *map(legal, self.servers)}:
                self.check_server(rule.server)
            return
        if tool not in self.tools:
            close = difflib.get_close_matches(tool, self.tools, n=1)
            raise UsageError(
                f"There is no tool {tool}",
                fix=f"Did you mean {close[0]}?" if close else "A server's tool is server__tool",
            )

    def _lists(self, table: ToolRules) -> Iterable[tuple[Wish, tuple[str, ...]]]:
        return (("deny", table.deny), ("ask", table.ask), ("allow", table.allow))

    def _closed(self, tool: str, source: str) -> None:
        entry = Entry(rule=Rule(tool=tool), wish="ask", source=source, everywhere=True)
        self.entries.append(entry)

    def _fault(self, table: ToolRules, key: str, error: UsageError) -> None:
        self.faults.append(
            ConfigFault(
                file=table.place.file if table.place else Path("config.toml"),
                line=table.place.line if table.place else 0,
                key=key,
                what=str(error),
            )
        )
