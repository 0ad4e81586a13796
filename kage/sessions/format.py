"""One line of a session file: how each message is written and read back.

The first line is the header ``{"type": "session", "version": 1, ...}``. Every later line has
``type``, ``id``, ``parent`` (the line it follows) and ``at`` (seconds since the epoch).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, assert_never

from kage.core.content import Artifact, Audio, Content, Image, Resource, ResourceLink, Text
from kage.core.messages import (
    AssistantMessage,
    Message,
    Outcome,
    Part,
    Stop,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from kage.core.undo import Effect, Touched
from kage.core.usage import Usage

VERSION = 1
_FAR = 1e11  # seconds or tokens; a file can hold any number

Json = dict[str, Any]  # JSON objects, before they are typed


class BadLine(ValueError):
    """A line that is no message; the text says why."""


def to_line(data: Mapping[str, Any]) -> bytes:
    """Write one line, newline included; lone surrogates become U+FFFD so that it never fails."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def encode(message: Message) -> Json:
    """Turn a message into what its line holds, without ``parent`` and ``at``."""
    match message:
        case UserMessage():
            said: Json = {
                "type": "user",
                "id": message.id,
                "content": [_content(part) for part in message.content],
            }
            return {**said, "written": message.written} if message.written else said
        case AssistantMessage():
            usage = message.usage
            return {
                "type": "assistant",
                "id": message.id,
                "model": message.model,
                "stop": message.stop.value,
                "parts": [_part(part) for part in message.parts],
                "usage": {
                    "input": usage.input,
                    "output": usage.output,
                    "cache_read": usage.cache_read,
                    "cache_write": usage.cache_write,
                },
            }
        case ToolMessage():
            line: Json = {
                "type": "tool",
                "id": message.id,
                "call": message.call_id,
                "name": message.name,
                "outcome": message.outcome.value,
                "seconds": round(message.seconds, 3),
                "content": [_content(part) for part in message.content],
            }
            if message.summary:
                line["summary"] = message.summary
            if message.diff:
                line["diff"] = message.diff
            if message.server:
                line["server"] = message.server
            if message.warnings:
                line["warnings"] = list(message.warnings)
            if message.structured is not None:
                line["structured"] = message.structured
            if message.effect is not None:
                line["effect"] = asdict(message.effect)
            return line
        case _:
            assert_never(message)


def decode(line: Json) -> Message:
    """Turn a line back into its message.

    Raises:
        BadLine: it has another type, or a field is missing or wrong.
    """
    try:
        match line.get("type"):
            case "user":
                return UserMessage(
                    id=_text(line["id"]),
                    content=_contents(line["content"]),
                    written=_text(line.get("written", "")),
                )
            case "assistant":
                return AssistantMessage(
                    id=_text(line["id"]),
                    model=_text(line["model"]),
                    stop=Stop(line["stop"]),
                    parts=tuple(_read_part(part) for part in line["parts"]),
                    usage=Usage(**{key: _count(value) for key, value in line["usage"].items()}),
                )
            case "tool":
                return ToolMessage(
                    id=_text(line["id"]),
                    call_id=_text(line["call"]),
                    name=_text(line["name"]),
                    outcome=Outcome(line["outcome"]),
                    seconds=seconds(line["seconds"]),
                    content=_contents(line["content"]),
                    summary=_text(line.get("summary", "")),
                    diff=_text(line.get("diff", "")),
                    structured=line.get("structured"),
                    server=_text(line.get("server", "")),
                    warnings=tuple(map(_text, line.get("warnings", ()))),
                    effect=_read_effect(line.get("effect")),
                )
            case other:
                raise BadLine(f"unknown type {other!r}")
    except BadLine:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadLine(f"{type(error).__name__}: {error}") from error


def seconds(value: object) -> float:
    """Read seconds; 0.0 for what is none, or further away than any clock shows."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0.0
    return float(value) if -_FAR < value < _FAR else 0.0


def _count(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < _FAR:
        raise BadLine("a count of tokens is no number of tokens")
    return value


def _content(part: Content) -> Json:
    match part:
        case Text():
            return {"kind": "text", "text": part.text}
        case Image():
            return {"kind": "image", "data": part.data, "mime": part.mime, **_path(part.path)}
        case Audio():
            return {"kind": "audio", "data": part.data, "mime": part.mime, **_path(part.path)}
        case Resource():
            body = {"text": part.text} if part.text is not None else {"blob": part.blob}
            body |= _path(part.path)
            return {"kind": "resource", "uri": part.uri, "mime": part.mime, **body}
        case ResourceLink():
            return {
                "kind": "link",
                "uri": part.uri,
                "name": part.name,
                "mime": part.mime,
                "description": part.description,
            }
        case Artifact():
            return {
                "kind": "artifact",
                "of": part.of,
                "path": part.path,
                "mime": part.mime,
                "size": part.size,
                "uri": part.uri,
            }
        case _:
            assert_never(part)


def _path(path: str) -> Json:
    return {"path": path} if path else {}


def _contents(value: object) -> tuple[Content, ...]:
    if not isinstance(value, list):
        raise BadLine("content is no list")
    return tuple(_read_content(part) for part in value)


def _read_content(data: Json) -> Content:
    match data.get("kind"):
        case "text":
            return Text(_text(data["text"]))
        case "image":
            return Image(
                data=_text(data["data"]),
                mime=_text(data["mime"]),
                path=_text(data.get("path", "")),
            )
        case "audio":
            return Audio(
                data=_text(data["data"]),
                mime=_text(data["mime"]),
                path=_text(data.get("path", "")),
            )
        case "resource":
            return Resource(
                uri=_text(data["uri"]),
                mime=_text(data["mime"]),
                text=_text(data["text"]) if "text" in data else None,
                blob=_text(data["blob"]) if data.get("blob") is not None else None,
                path=_text(data.get("path", "")),
            )
        case "link":
            return ResourceLink(
                uri=_text(data["uri"]),
                name=_text(data["name"]),
                mime=_text(data["mime"]),
                description=_text(data["description"]),
            )
        case "artifact":
            return Artifact(
                of=_text(data["of"]),
                path=_text(data["path"]),
                mime=_text(data["mime"]),
                size=_count(data["size"]),
                uri=_text(data["uri"]),
            )
        case other:
            raise BadLine(f"unknown content {other!r}")


def _part(part: Part) -> Json:
    match part:
        case Text():
            return {"kind": "text", "text": part.text}
        case Thinking():
            return {
                "kind": "thinking",
                "text": part.text,
                "signature": part.signature,
                "redacted": part.redacted,
            }
        case ToolCall():
            data: Json = {
                "kind": "call",
                "id": part.id,
                "name": part.name,
                "arguments": dict(part.arguments),
            }
            if part.broken is not None:
                data["broken"] = part.broken
            return data
        case _:
            assert_never(part)


def _read_part(data: Json) -> Part:
    match data.get("kind"):
        case "text":
            return Text(_text(data["text"]))
        case "thinking":
            return Thinking(
                text=_text(data["text"]),
                signature=_text(data["signature"]),
                redacted=_text(data["redacted"]),
            )
        case "call":
            arguments = data["arguments"]
            if not isinstance(arguments, dict):
                raise BadLine("arguments are no object")
            broken = data.get("broken")
            return ToolCall(
                id=_text(data["id"]),
                name=_text(data["name"]),
                arguments=arguments,
                broken=None if broken is None else _text(broken),
            )
        case other:
            raise BadLine(f"unknown part {other!r}")


def _read_effect(data: object) -> Effect | None:
    """Read what a call did to files; a broken one costs only itself."""
    if not isinstance(data, dict):
        return None
    try:
        return Effect(
            record=_text(data["record"]),
            files=tuple(
                Touched(
                    path=_text(item["path"]),
                    verb=_text(item["verb"]),
                    undoable=item["undoable"] is True,
                )
                for item in data["files"]
            ),
            total=_count(data["total"]),
            beside=_count(data["beside"]),
            note=_text(data["note"]),
            claim_broken=data["claim_broken"] is True,
            own=data["own"] is True,
        )
    except (KeyError, TypeError, BadLine):
        return None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise BadLine(f"expected text, got {type(value).__name__}")
    return value
