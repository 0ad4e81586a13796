"""Which requests wait for their answer, under which id on the wire."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from kage.mcp.client.wire.exchange import Exchange

_DIGITS = 16  # an id below 2**52 has no more


@dataclass(frozen=True, slots=True)
class Pending:
    """One request without an answer."""

    sdk_id: int | str
    method: str
    exchange: Exchange | None


class Ledger:
    """Gives each request of the SDK an id on the wire nobody can guess, and finds it again.

    The SDK counts 1, 2, 3, so that a server could answer a question before it is asked.
    """

    def __init__(self) -> None:
        self._pending: dict[int | str, Pending] = {}  # by wire id
        self._wire_ids: dict[int | str, int | str] = {}  # by the SDK's id
        self._tokens: dict[str, Exchange] = {}

    def add(self, sdk_id: int | str, method: str, exchange: Exchange | None) -> int | str:
        """Enter a request; gives its id on the wire.

        An id that is text stays: the SDK makes those itself for subscriptions, whose notices
        name it.
        """
        wire = sdk_id if isinstance(sdk_id, str) else self._new_id()
        self._pending[wire] = Pending(sdk_id, method, exchange)
        self._wire_ids[sdk_id] = wire
        if exchange is not None:
            self._tokens[exchange.token] = exchange
        return wire

    def forget(self, sdk_id: object) -> int | str | None:
        """Strike a request out; gives its id on the wire, None when it has none."""
        wire = self._wire_ids.get(sdk_id) if isinstance(sdk_id, int | str) else None
        if wire is not None:
            self.answered(wire)
        return wire

    def disown(self, sdk_id: int | str) -> None:
        """Take note that kage answered a question of the handshake itself.

        The server's answer to ``initialize`` is nobody's then; one to the era question counts.
        """
        wire = self._wire_ids.pop(sdk_id, None)
        if wire is not None and self._pending[wire].method == "initialize":
            del self._pending[wire]

    def answered(self, wire: int | str | None) -> Pending | None:
        """Give, once, the request an answer with this very id belongs to."""
        pending = self._pending.pop(wire, None) if wire is not None else None
        if pending is not None:
            self._wire_ids.pop(pending.sdk_id, None)
            if pending.exchange is not None:
                self._tokens.pop(pending.exchange.token, None)
        return pending

    def misspelt(self, wire: int | str | None) -> Pending | None:
        """Give the request an answer belongs to whose id came as text: it has to fail."""
        if isinstance(wire, str) and wire.isascii() and wire.isdigit() and len(wire) <= _DIGITS:
            return self.answered(int(wire))
        return None

    def by_token(self, token: object) -> Exchange | None:
        """Give the exchange progress with this token is about."""
        return self._tokens.get(token) if isinstance(token, str) else None

    def has(self, *, id: str | None = None, method: str | None = None) -> bool:
        """Say whether a request with this id on the wire, or of this method, waits."""
        if id is not None:
            return id in self._pending
        return any(pending.method == method for pending in self._pending.values())

    def _new_id(self) -> int:
        while (wire := secrets.randbelow(1 << 52) + 1) in self._pending:
            pass
        return wire
