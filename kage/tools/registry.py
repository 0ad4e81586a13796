"""Every tool the model can call, by exposed name; swapped per source, read as snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from kage.core.tools import Tool

BUILTIN = "builtin"


class Registry:
    """Tools by source; a source is ``builtin``, ``server:<name>`` or ``plugin:<name>``."""

    def __init__(self) -> None:
        self._sources: dict[str, dict[str, Tool]] = {}
        self._snapshot: Mapping[str, Tool] | None = None

    def replace(self, source: str, tools: Iterable[Tool]) -> tuple[str, ...]:
        """Swap all tools of ``source`` at once.

        Built-in names belong to built-ins: a tool of another source that carries a taken name is
        left out. Returns the names that were left out.
        """
        taken = {name for other, held in self._sources.items() if other != source for name in held}
        kept: dict[str, Tool] = {}
        refused: list[str] = []
        for tool in tools:
            name = tool.spec.name
            if name in taken or name in kept:
                refused.append(name)
            else:
                kept[name] = tool
        if kept:
            self._sources[source] = kept
        else:
            self._sources.pop(source, None)
        self._snapshot = None
        return tuple(refused)

    def snapshot(self) -> Mapping[str, Tool]:
        """Give every tool by name, in a stable order: built-ins first, then sources by name."""
        if self._snapshot is None:
            ordered = sorted(self._sources.items(), key=lambda item: (item[0] != BUILTIN, item[0]))
            self._snapshot = MappingProxyType(
                {name: tool for _, tools in ordered for name, tool in tools.items()}
            )
        return self._snapshot
