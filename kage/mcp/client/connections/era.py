"""Which of the protocol's two eras a stdio server speaks, and the probe that finds out.

The SDK asks ``server/discover`` first and falls back to ``initialize`` on any error. A server that
ignores the question would cost it ten seconds, so the probe is answered here after two; a real
answer that comes later still wins while the handshake is open (DESIGN section 5, "Era").
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kage.mcp.client.servers.eras import Era
from kage.mcp.client.transport.base import ANSWER_LOST

PROBE_WAIT = 2.0  # seconds a legacy server may stay silent on the question
TRUSTED_WAIT = 9.0  # for one that answered it before; below the SDK's own ten seconds
MODERN = "2026-07-28"
_TIMED_OUT = -32001
_WRONG_VERSION = -32022


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A message to hand to the SDK as if the server had sent it; ``id`` is the SDK's."""

    id: int | str
    result: Mapping[str, Any] | None = None
    code: int = 0
    message: str = ""
    data: Mapping[str, Any] | None = None


class Probe:
    """Follows ``server/discover`` and ``initialize`` on one connection.

    Args:
        wait: Seconds until the question is answered here; None: only the server may answer.
        modern_only: ``initialize`` is never written.
        reply: Hands a local answer to the SDK.
        later: ``loop.call_later``.
    """

    def __init__(
        self,
        *,
        wait: float | None,
        modern_only: bool,
        reply: Callable[[Reply], None],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._wait = wait
        self._modern_only = modern_only
        self._reply = reply
        self._later = later
        self._asked: int | str | None = None  # SDK id of the open question
        self._overdue: set[int | str] = set()  # questions answered here
        self._handshake: int | str | None = None  # SDK id of the open initialize
        self._late: Mapping[str, Any] | None = None
        self._refusal = ""
        self.sent = False  # the question went out
        self.verdict: Era | None = None  # by the server's own answer

    def asking(self, request: int | str) -> bool:
        """Take note of a question; False when it is answered here and must not be written."""
        if self._late is not None:
            self._reply(Reply(id=request, result=self._late))
            return False
        self.sent = True
        self._asked = request
        if self._wait is not None:
            self._later(self._wait, lambda: self._expire(request))
        return True

    def shaking(self, request: int | str) -> bool:
        """Take note of an ``initialize``; False when it must not be written."""
        self._handshake = request
        if self._asked is not None:  # the SDK gave up on the question by itself
            self._overdue.add(self._asked)
            self._asked = None
        if not self._modern_only:
            return True
        if self._refusal:
            self._refuse(request)
        return False

    def answered(
        self, request: int | str, method: str, *, result: object, code: int, message: str
    ) -> bool:
        """Take note of the server's answer to either; False when the SDK must not see it."""
        if method == "initialize":
            wanted = self._handshake == request
            self._handshake = None if wanted else self._handshake
            return wanted
        overdue = request in self._overdue
        if self._asked == request:
            self._asked = None
        if isinstance(result, Mapping):
            modern = MODERN in _versions(result)
            self.verdict = "modern" if modern else "legacy"
            if overdue and modern:
                self._switch(result)
        elif code not in (_WRONG_VERSION, ANSWER_LOST):
            self.verdict = "legacy"
            self._refusal = message or "it gave no reason"
            if self._modern_only and self._handshake is not None:
                self._refuse(self._handshake)
        return not overdue

    def _expire(self, request: int | str) -> None:
        if self._asked != request:
            return
        self._asked = None
        self._overdue.add(request)
        text = f"no answer to server/discover within {self._wait:g} s"
        self._reply(Reply(id=request, code=_TIMED_OUT, message=text))

    def _switch(self, result: Mapping[str, Any]) -> None:
        """Answer the open handshake so that the SDK asks again, and finds the late answer."""
        if self._handshake is None:
            return
        self._late = result
        request, self._handshake = self._handshake, None
        data = {"supported": _versions(result), "requested": "2025-11-25"}
        self._reply(
            Reply(
                id=request, code=_WRONG_VERSION, message="Unsupported protocol version", data=data
            )
        )

    def _refuse(self, request: int | str) -> None:
        self._handshake = None
        text = f"it does not speak {MODERN}, the one revision its protocol setting allows"
        self._reply(Reply(id=request, code=-32600, message=f"{text}: {self._refusal}"))


def make_probe(
    protocol: str,
    known: Era | None,
    reply: Callable[[Reply], None],
    *,
    patience: float = PROBE_WAIT,
) -> Probe:
    """Make the probe of a connection, for the entry's ``protocol`` and what is known of it.

    Args:
        patience: Seconds a server nothing is known of may stay silent.
    """
    only = protocol == MODERN
    wait = TRUSTED_WAIT if known == "modern" else patience
    later = asyncio.get_running_loop().call_later
    return Probe(wait=None if only else wait, modern_only=only, reply=reply, later=later)


def _versions(result: Mapping[str, Any]) -> list[str]:
    raw = result.get("supportedVersions")
    return [item for item in raw if isinstance(item, str)] if isinstance(raw, list) else []
