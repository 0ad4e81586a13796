"""Small parts of messages the tap takes off or puts on, and what it counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kage.core.canonical import digest

if TYPE_CHECKING:
    from mcp_types import JSONRPCError, JSONRPCResponse

LOG_LEVEL = "io.modelcontextprotocol/logLevel"
_VERSION = "io.modelcontextprotocol/protocolVersion"


@dataclass(slots=True)
class Meter:
    """What passed the tap since the connection came up."""

    sent: int = 0
    received: int = 0
    dropped: int = 0  # answers nobody waits for, broken or unwanted messages
    refused: int = 0  # calls without a decision


def with_log_level(params: Mapping[str, Any] | None, level: str) -> dict[str, Any] | None:
    """Ask for log messages along with a request, where its era does so request by request."""
    meta = (params or {}).get("_meta")
    if params is None or not level or not isinstance(meta, Mapping) or _VERSION not in meta:
        return dict(params) if params is not None else None
    return {**params, "_meta": {**meta, LOG_LEVEL: level}}


def call_of(params: Mapping[str, Any]) -> tuple[str, str]:
    """Give the name a ``tools/call`` carries and the digest of its arguments."""
    return str(params.get("name")), digest(params.get("arguments") or {})


def error_data(error: tuple[int, str, Any] | None) -> Any:
    """Give what a server sent along with an error, as it came."""
    return error[2].error.data if error is not None and error[2] is not None else None


def answer_message(
    request: int | str, result: Mapping[str, Any] | None, error: tuple[int, str] | None
) -> JSONRPCError | JSONRPCResponse:
    """Make the answer to a request of the server."""
    from mcp_types import ErrorData, JSONRPCError, JSONRPCResponse

    if error is not None:
        told = ErrorData(code=error[0], message=error[1])
        return JSONRPCError(jsonrpc="2.0", id=request, error=told)
    return JSONRPCResponse(jsonrpc="2.0", id=request, result=dict(result or {}))


def amount(value: object) -> float | None:
    """Read a number of a progress report; None for what no bar can show."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        amount = float(value)
    except OverflowError:  # JSON has whole numbers of any length
        return None
    return amount if math.isfinite(amount) else None


def title(method: str, params: Mapping[str, Any] | None) -> str:
    """Name a message for the trace."""
    name = (params or {}).get("name") if method == "tools/call" else None
    return f"{method} {name}" if isinstance(name, str) else method
