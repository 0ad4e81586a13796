"""Turn what a tool gave back into what the model reads: redacted, sent on or kept, and cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from kage.agent.keeping import routed
from kage.agent.outgoing import spare
from kage.core.content import Artifact, Audio, Content, Image, Resource, ResourceLink, Text
from kage.core.gate import CallRequest
from kage.core.messages import Outcome, ToolMessage
from kage.core.tools import Handling, Risk, ToolResult, ToolSpec
from kage.providers.media import words
from kage.sessions.artifacts import Artifacts
from kage.tools.truncate import shorten

MAX_PARTS = 200  # of one result; more texts become one, more pictures are left out
MAX_STRUCTURED = 1 << 20  # characters of JSON kept beside the text; more is only in the text
PER_TOKEN = 4  # characters, as a rule of thumb for every model
_MUCH = 500_000  # characters
_DEPTH = 100  # of structured content
_SPARE = 100  # characters providers add around a result


class _TooDeep(Exception):
    """Structured content is nested deeper than anything needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What results are prepared with, for one session."""

    artifacts: Artifacts
    redact: Callable[[str], str]
    limit: int  # characters of one result the model reads, where its tool says nothing


def shown(request: CallRequest, result: ToolResult, seconds: float, desk: Desk) -> ToolMessage:
    """Build the message of a finished call; what the model reads of it is within the limit.

    Structured content stands beside the other parts, and as text too unless a text part says the
    same. What its server's ``output`` sends to a file is replaced by the file's name; pictures,
    sounds and binary resources get a copy there, for models that cannot take them.
    """
    tool, redact = request.tool, desk.redact
    parts = [_redacted(part, redact) for part in result.content]
    structured, text = _structured(result, redact)
    if text and not any(
        isinstance(part, Text) and _says(part.text, result.structured)
        for part in result.content[:MAX_PARTS]
    ):
        parts.append(Text(text))
    # a failure has to be understood by the model, whatever is done with results
    handling = tool.handling if result.outcome is Outcome.OK else Handling()
    parts = routed(parts, handling, desk.artifacts, name=tool.name, redact=redact)
    limit = tool.handling.max_output_tokens * PER_TOKEN or desk.limit
    warnings: tuple[str, ...] = ()
    if _from_others(tool):
        warnings = _warnings(parts)
        limit = max(limit - spare(warnings), limit // 2)
    return ToolMessage(
        call_id=request.call_id,
        name=tool.name,
        outcome=result.outcome,
        content=_cut(parts, tool.name, desk.artifacts, limit),
        seconds=seconds,
        summary=redact(result.summary) or _files(parts),
        diff=redact(result.diff),
        structured=structured,
        server=tool.server.server if tool.server is not None else "",
        warnings=warnings,
    )


def _from_others(tool: ToolSpec) -> bool:
    """Say whether results are words of a server or a web page, which are put between marks."""
    return tool.server is not None or tool.risk is Risk.NETWORK


def _warnings(parts: Iterable[Content]) -> tuple[str, ...]:
    """Give what the scanners see; kage's own remarks are no imitation of themselves."""
    from kage.permissions.scanners import Code, Kind, scan_all  # with the first result

    texts = [part for part in parts if not is_media(part)]
    own = [part for part in texts if isinstance(part, Text) and part.own]
    others = (("", words(part)) for part in texts if not (isinstance(part, Text) and part.own))
    flags = [*scan_all(others, Kind.RESULT)]
    if own:
        quoted = scan_all((("", words(part)) for part in own), Kind.RESULT)
        flags += [flag for flag in quoted if flag.code is not Code.IMITATION]
    return tuple(dict.fromkeys(map(str, flags)))


def _files(parts: Iterable[Content]) -> str:
    """Say in a few words that files hold something of the result."""
    held = [part.path for part in parts if isinstance(part, Artifact) or is_media(part)]
    count = len([path for path in held if path])
    return f"{count} file{'s' if count > 1 else ''} kept" if count else ""


def heavy(result: ToolResult) -> bool:
    """Say whether :func:`shown` would hold up the loop, and belongs into a thread."""
    return (
        result.structured is not None
        or len(result.content) > MAX_PARTS
        or sum(map(_weight, result.content)) > _MUCH
    )


def _cut(parts: list[Content], name: str, artifacts: Artifacts, limit: int) -> tuple[Content, ...]:
    """Bring all words, those that stand in for media too, under ``limit``; so many media stay."""
    media = [part for part in parts if is_media(part)]
    texts = [part for part in parts if not is_media(part)]
    left_out = len(media) - MAX_PARTS
    reserve = sum(len(words(part)) + 1 for part in media[:MAX_PARTS])
    room = max(limit - _SPARE, limit // 2)
    if len(parts) <= MAX_PARTS and reserve + sum(len(words(part)) + 1 for part in texts) <= room:
        return tuple(parts)
    if left_out > 0:
        note = f"[{left_out} more images, sounds or files were left out"
        texts.insert(0, Text(f"{note}; they are in {artifacts.folder}]"))
    while reserve > room // 2 and media:  # their addresses alone would fill the message
        media.pop()
        reserve = sum(len(words(part)) + 1 for part in media[:MAX_PARTS])
    if not texts:
        return tuple(media[:MAX_PARTS])
    whole = "\n".join(words(part) for part in texts)
    if len(whole) > room - reserve:
        stem = artifacts.stem(name)
        whole = shorten(whole, limit=room - reserve, scratch=artifacts.folder, name=stem).text
    return (Text(whole), *media[:MAX_PARTS])


def is_media(part: Content) -> TypeGuard[Image | Audio | Resource]:
    """Say whether a part is bytes and not words."""
    return isinstance(part, Image | Audio) or (isinstance(part, Resource) and part.text is None)


def _weight(part: Content) -> int:
    """Count the characters that are looked at one by one."""
    match part:
        case Text(text):
            return len(text)
        case Image(data=data) | Audio(data=data):
            return len(data)
        case Resource():
            return len(part.text or "") + len(part.blob or "") + len(part.uri)
        case ResourceLink():
            return len(part.uri) + len(part.name) + len(part.description)
        case _:
            return 0


def _redacted(part: Content, redact: Callable[[str], str]) -> Content:
    match part:
        case Text():
            return replace(part, text=redact(part.text))
        case Resource():
            text = redact(part.text) if part.text is not None else None
            return replace(part, uri=redact(part.uri), text=text)
        case ResourceLink():
            return ResourceLink(
                uri=redact(part.uri),
                name=redact(part.name),
                mime=part.mime,
                description=redact(part.description),
            )
        case _:
            return part


def _structured(result: ToolResult, redact: Callable[[str], str]) -> tuple[Any, str]:
    """Give the structured content without secrets, and as text; None and "" without any."""
    if result.structured is None:
        return None, ""
    try:
        value = _clean(result.structured, redact, 0)
        text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    except (_TooDeep, RecursionError, ValueError):
        return None, "[the structured result is nested too deep to be shown]"
    return (value if len(text) <= MAX_STRUCTURED else None), text


def _clean(value: Any, redact: Callable[[str], str], depth: int) -> Any:  # any JSON value
    if depth > _DEPTH:
        raise _TooDeep
    match value:
        case str():
            return redact(value)
        case dict():
            return {redact(str(k)): _clean(item, redact, depth + 1) for k, item in value.items()}
        case list() | tuple():
            return [_clean(item, redact, depth + 1) for item in value]
        case _:
            return value


def _says(text: str, structured: object) -> bool:
    try:
        return bool(json.loads(text) == structured)
    except (ValueError, RecursionError):
        return False
