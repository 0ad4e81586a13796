"""Ask the person behind the calling program: by a request, or by a result that wants an answer.

The handshake revisions let the server send ``elicitation/create`` and wait. In 2026-07-28 the call
ends with ``input_required`` and is sent again with the answer; what came back is only believed with
the seal this process put on it, for the same tool and arguments, once, and not for long.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

from kage.core.canonical import digest
from kage.core.sanitise import clip, visible
from kage.core.tools import ToolSpec
from kage.mcp.server import rpc
from kage.mcp.server.rpc import INVALID_PARAMS, Answer, Invalid

PATIENCE = 600.0  # seconds a question stays open
_KEY = "confirm"
_SHOWN = 2000  # characters of one argument in the question
_JUDGED = 130_000  # of the one a person judges by: all of any command that can run
_MOST_USED = 4096


def question(spec: ToolSpec, arguments: Mapping[str, Any], reason: str) -> dict[str, Any]:  # JSON
    """Make the parameters of ``elicitation/create``: a form without fields, to accept or not."""
    lines = [f"Allow {spec.name}? ({reason})"]
    for name, value in arguments.items():
        text = value if isinstance(value, str) else rpc.encode(value).decode()
        most = _JUDGED if name == spec.subject.argument else _SHOWN
        shown = visible(clip(text, most))
        if len(text) > most:
            shown += f" [{len(text)} characters in all]"
        lines.append(f"{visible(name, single_line=True)}: {shown}")
    return {
        "message": "\n".join(lines),
        "requestedSchema": {"type": "object", "properties": {}},
    }


def accepted(answer: Mapping[str, Any] | None) -> bool:  # JSON
    """Say whether an answer is a yes."""
    return answer is not None and answer.get("action") == "accept"


class Asking:
    """Questions sent as requests of our own; the answers come back by id."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._open: dict[str, asyncio.Future[Mapping[str, Any] | None]] = {}
        self._count = 0
        self._closed = False

    async def ask(self, params: Mapping[str, Any]) -> bool | None:  # JSON
        """Put the question; None when nobody answered.

        Cancelling takes the question back.
        """
        if self._closed:
            return None
        self._count += 1
        id_ = f"kage-{self._count}-{secrets.token_hex(8)}"
        future = asyncio.get_running_loop().create_future()
        self._open[id_] = future
        self._send(rpc.request(id_, "elicitation/create", params))
        answered = False
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await future
            answered = True
        except TimeoutError:
            return None
        finally:
            del self._open[id_]
            if not answered and not self._closed:
                self._send(rpc.notification("notifications/cancelled", {"requestId": id_}))
        return None if answer is None else accepted(answer)

    def answer(self, message: Answer) -> None:
        """Take an answer; one to no open question is ignored."""
        future = self._open.get(message.id) if isinstance(message.id, str) else None
        if future is not None and not future.done():
            future.set_result(message.result)

    def close(self) -> None:
        """Nobody can answer any more."""
        self._closed = True
        for future in self._open.values():
            if not future.done():
                future.set_result(None)


class Sealing:
    """Questions sent as results; the state the client carries back is sealed."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._used: dict[str, float] = {}  # by nonce, until when it would be valid

    def required(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],  # JSON
        params: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Make the result that asks."""
        expiry = f"{time.monotonic() + PATIENCE:.0f}"
        payload = "|".join((secrets.token_hex(16), expiry, _subject(spec, arguments)))
        return {
            "resultType": "input_required",
            "inputRequests": {
                _KEY: {"method": "elicitation/create", "params": {"mode": "form", **params}}
            },
            "requestState": base64.urlsafe_b64encode(
                f"{payload}|{self._mark(payload)}".encode()
            ).decode(),
        }

    def read(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],  # JSON
        params: Mapping[str, Any],
    ) -> bool | None:
        """Read the answer a repeated call brings; None when it brings none.

        Raises:
            Invalid: the state is not one this process sealed for this very call, or was used.
        """
        state, responses = params.get("requestState"), params.get("inputResponses", {})
        if state is None:
            return None
        nonce, expiry = self._opened(spec, arguments, state)
        if not isinstance(responses, dict):
            raise Invalid(INVALID_PARAMS, "inputResponses must be an object")
        answer = responses.get(_KEY)
        if not isinstance(answer, dict):
            return None
        now = time.monotonic()
        self._used = {used: until for used, until in self._used.items() if until > now}
        if len(self._used) >= _MOST_USED:
            raise Invalid(INVALID_PARAMS, "too many questions were answered lately")
        self._used[nonce] = expiry
        return accepted(answer)

    def _opened(
        self, spec: ToolSpec, arguments: Mapping[str, Any], state: object
    ) -> tuple[str, float]:
        refused = Invalid(INVALID_PARAMS, "requestState is not valid for this call")
        try:
            raw = base64.b64decode(str(state).encode(), altchars=b"-_", validate=True).decode()
            payload, mark = raw.rsplit("|", 1)
            nonce, expiry, subject = payload.split("|")
        except ValueError:
            raise refused from None
        if not hmac.compare_digest(mark.encode(), self._mark(payload).encode()):
            raise refused
        if subject != _subject(spec, arguments) or nonce in self._used:
            raise refused
        if float(expiry) < time.monotonic():
            raise Invalid(INVALID_PARAMS, "requestState has expired: send the call again")
        return nonce, float(expiry)

    def _mark(self, payload: str) -> str:
        return hmac.new(self._key, payload.encode(), hashlib.sha256).hexdigest()


def _subject(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:  # JSON
    return digest({"tool": spec.name, "arguments": dict(arguments)})
