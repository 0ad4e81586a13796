"""Open decisions by the exact bytes they cover; the tap writes nothing without one."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from kage.core.canonical import NotCanonical, digest

Key = tuple[str, str, str]  # connection, original tool name, SHA-256 of the canonical arguments


class SealBook:
    """Every decision that allows an MCP call and has not been used yet (``core.gate.Seals``).

    One decision covers one logical call: two identical calls in parallel need two decisions.
    """

    def __init__(self) -> None:
        self._open: dict[Key, deque[str]] = {}
        self._keys: dict[str, Key] = {}

    def open(self, connection: str, tool: str, arguments_digest: str, decision_id: str) -> None:
        """Let one call of ``tool`` with exactly these arguments through.

        Raises:
            ValueError: the decision is open already.
        """
        if decision_id in self._keys:
            raise ValueError(f"decision {decision_id} is open already")
        key = (connection, tool, arguments_digest)
        self._open.setdefault(key, deque()).append(decision_id)
        self._keys[decision_id] = key

    def bind(self, connection: str, tool: str, arguments: Mapping[str, Any] | None) -> str | None:
        """Use up one open decision for exactly these bytes; its id, or None if there is none.

        Absent arguments are the empty object.
        """
        try:
            key = (connection, tool, digest(arguments if arguments is not None else {}))
        except NotCanonical:
            return None
        waiting = self._open.get(key)
        if not waiting:
            return None
        decision_id = waiting[0]
        self.close(decision_id)
        return decision_id

    def close(self, decision_id: str) -> bool:
        """Take a decision back; whether it was still open."""
        key = self._keys.pop(decision_id, None)
        if key is None:
            return False
        waiting = self._open[key]
        waiting.remove(decision_id)
        if not waiting:
            del self._open[key]
        return True

    def __len__(self) -> int:
        return len(self._keys)
