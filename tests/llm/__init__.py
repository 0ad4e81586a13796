"""A loopback model server with a script, in Anthropic's and OpenAI's wire formats."""

from __future__ import annotations

from tests.llm.script import (
    Piece,
    Request,
    Turn,
    call,
    call_broken,
    call_with,
    drop,
    fail,
    hold,
    pause,
    raw,
    say,
    stop,
    stream_error,
    thinking,
    too_long,
    usage,
)
from tests.llm.server import ScriptedModel

__all__ = [
    "Piece",
    "Request",
    "ScriptedModel",
    "Turn",
    "call",
    "call_broken",
    "call_with",
    "drop",
    "fail",
    "hold",
    "pause",
    "raw",
    "say",
    "stop",
    "stream_error",
    "thinking",
    "too_long",
    "usage",
]
