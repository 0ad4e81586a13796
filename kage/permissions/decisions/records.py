"""What a decision and an outcome look like in the decision log."""

from __future__ import annotations

import hashlib
from typing import Any

from kage.core.gate import CallRequest, Decision
from kage.core.messages import Outcome


def call(request: CallRequest, *, session_id: str, decision_id: str, shown: str) -> dict[str, Any]:
    """Describe the call a decision is about; ``shown`` is the digest of its arguments."""
    server = request.tool.server
    return {
        "id": decision_id,
        "session": session_id,
        "workspace": str(request.workspace),
        "call": request.call_id,
        "tool": request.tool.name,
        "server": server.server if server else "",
        "origin": server.origin if server else "",
        "original": server.original if server else request.tool.name,
        "arguments": request.arguments,
        "digest": shown,
        "pin": server.pin if server else "",
        "entry_hash": server.entry_hash if server else "",
        "by_hand": request.by_hand,
    }


def verdict(decision: Decision, *, why: str) -> dict[str, Any]:
    """Describe what was decided; ``why`` is the clause that led there."""
    fields: dict[str, Any] = {
        "verdict": str(decision.verdict),
        "who": str(decision.who),
        "rule": decision.rule,
        "reason": why,
    }
    if decision.warnings:
        fields["warnings"] = list(decision.warnings)
    return fields


def outcome(
    request: CallRequest,
    decision: Decision,
    ended: Outcome,
    *,
    session_id: str,
    seconds: float,
    result: str,
) -> dict[str, Any]:
    """Describe how an allowed call ended; the result is kept as a digest."""
    return {
        "decision": decision.id,
        "session": session_id,
        "call": request.call_id,
        "outcome": str(ended),
        "seconds": round(seconds, 6),
        "result": hashlib.sha256(result.encode("utf-8", "surrogatepass")).hexdigest(),
    }
