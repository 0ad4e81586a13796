"""A scripted turn as the server-sent events of each wire format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.llm.script import Call, Piece, Raw, Request, Say, Stop, StreamError, Think, Tokens

Step = bytes | Piece  # bytes to send, or a piece the server acts on (pause, hold, drop)

_DEFAULT = Tokens(input=10, output=5, cache_read=0, cache_write=0)


def events(request: Request, pieces: list[Piece]) -> Iterator[Step]:
    """Give what goes over the wire, in order."""
    if request.wire == "anthropic":
        return _anthropic(request, pieces)
    return _openai(request, pieces)


def error_body(wire: str, kind: str, message: str) -> dict[str, Any]:
    """Give the body of an HTTP error."""
    if wire == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


def _chunks(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]


def _event(name: str, **data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()


def _tokens(pieces: list[Piece]) -> Tokens:
    return next((p for p in reversed(pieces) if isinstance(p, Tokens)), _DEFAULT)


def _reason(pieces: list[Piece], calls: str, end: str) -> str:
    given = next((p.reason for p in pieces if isinstance(p, Stop)), "")
    return given or (calls if any(isinstance(p, Call) for p in pieces) else end)


def _anthropic(request: Request, pieces: list[Piece]) -> Iterator[Step]:
    tokens = _tokens(pieces)
    yield _event(
        "message_start",
        message={
            "id": f"msg_{request.number}",
            "type": "message",
            "role": "assistant",
            "model": request.body.get("model", ""),
            "content": [],
            "stop_reason": None,
            "usage": {
                "input_tokens": tokens.input,
                "output_tokens": 1,
                "cache_read_input_tokens": tokens.cache_read,
                "cache_creation_input_tokens": tokens.cache_write,
            },
        },
    )
    yield _event("ping")
    index = 0
    for piece in pieces:
        match piece:
            case Say() | Think() | Call():
                yield from _anthropic_block(index, piece)
                index += 1
            case Raw(data):
                yield data
            case StreamError():
                yield _event("error", error={"type": piece.kind, "message": piece.message})
                return
            case Tokens() | Stop():
                pass
            case _:
                yield piece
    yield _event(
        "message_delta",
        delta={"stop_reason": _reason(pieces, "tool_use", "end_turn"), "stop_sequence": None},
        usage={"output_tokens": tokens.output},
    )
    yield _event("message_stop")


def _anthropic_block(index: int, piece: Say | Think | Call) -> Iterator[Step]:
    block: dict[str, Any]
    deltas: list[dict[str, Any]]
    match piece:
        case Say():
            block = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": t} for t in _chunks(piece.text, piece.chunk)]
        case Think(redacted="") as thought:
            block = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": t} for t in _chunks(thought.text, 8)]
            deltas.append({"type": "signature_delta", "signature": thought.signature})
        case Think():
            block = {"type": "redacted_thinking", "data": piece.redacted}
            deltas = []
        case Call():
            block = {"type": "tool_use", "id": piece.id, "name": piece.name, "input": {}}
            deltas = [
                {"type": "input_json_delta", "partial_json": t}
                for t in _chunks(piece.arguments, piece.chunk)
            ]
    yield _event("content_block_start", index=index, content_block=block)
    delay = piece.delay if isinstance(piece, Say) else 0.0
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
        if delay:
            yield _pause(delay)
    yield _event("content_block_stop", index=index)


def _pause(seconds: float) -> Piece:
    from tests.llm.script import Pause

    return Pause(seconds)


def _openai(request: Request, pieces: list[Piece]) -> Iterator[Step]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        body = {
            "id": f"chatcmpl-{request.number}",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": request.body.get("model", ""),
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        return f"data: {json.dumps(body)}\n\n".encode()

    yield chunk({"role": "assistant", "content": ""})
    index = 0
    for piece in pieces:
        match piece:
            case Say():
                for text in _chunks(piece.text, piece.chunk):
                    yield chunk({"content": text})
                    if piece.delay:
                        yield _pause(piece.delay)
            case Think():
                for text in _chunks(piece.text, 8):
                    yield chunk({"reasoning_content": text})
            case Call():
                yield from map(chunk, _openai_call(index, piece))
                index += 1
            case Raw(data):
                yield data
            case StreamError():
                body = error_body("openai", piece.kind, piece.message)
                yield f"data: {json.dumps(body)}\n\n".encode()
                return
            case Tokens() | Stop():
                pass
            case _:
                yield piece
    yield chunk({}, _reason(pieces, "tool_calls", "stop"))
    if request.body.get("stream_options", {}).get("include_usage"):
        yield _openai_usage(request, _tokens(pieces))
    yield b"data: [DONE]\n\n"


def _openai_call(index: int, piece: Call) -> Iterator[dict[str, Any]]:
    head = {
        "index": index,
        "id": piece.id,
        "type": "function",
        "function": {"name": piece.name, "arguments": ""},
    }
    yield {"tool_calls": [head]}
    for text in _chunks(piece.arguments, piece.chunk):
        yield {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def _openai_usage(request: Request, tokens: Tokens) -> bytes:
    prompt = tokens.input + tokens.cache_read + tokens.cache_write
    body = {
        "id": f"chatcmpl-{request.number}",
        "object": "chat.completion.chunk",
        "choices": [],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": tokens.output,
            "total_tokens": prompt + tokens.output,
            "prompt_tokens_details": {"cached_tokens": tokens.cache_read},
        },
    }
    return f"data: {json.dumps(body)}\n\n".encode()
