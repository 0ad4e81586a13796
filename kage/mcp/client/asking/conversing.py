"""Read the conversation of ``sampling/createMessage`` into kage's own messages."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from kage.core.content import Audio, Content, Image, Text, as_text
from kage.core.messages import (
    AssistantMessage,
    Message,
    Outcome,
    Part,
    Stop,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from kage.core.requests import SampleRequest
from kage.core.sanitise import clip
from kage.core.tools import Risk, ToolSpec
from kage.mcp.client.asking.elicitation import told_call
from kage.mcp.client.asking.requests import INVALID, Unanswerable
from kage.mcp.client.wire.wash import TooDeep, wash, weight

MAX_MESSAGES = 60
MAX_LETTERS = 8_000_000  # of the whole request, pictures included
MAX_PROSE = 200_000  # of its texts, which a person has to read
MAX_TOOLS = 64
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def read_sample(params: Mapping[str, Any], redact: Callable[[str], str]) -> SampleRequest:
    """Read a request; secrets kage knows are taken out of it.

    Raises:
        Unanswerable: it is malformed, or longer than a person could look at.
    """
    if weight(params, each=16, most=MAX_LETTERS) >= MAX_LETTERS:
        raise _bad("the request is too long")
    try:
        washed = wash(params, redact)
    except TooDeep as error:
        raise _bad(str(error)) from None
    raw = washed.get("messages")
    if not isinstance(raw, list) or not raw:
        raise _bad("the request has no messages")
    if len(raw) > MAX_MESSAGES:
        raise _bad(f"the request has {len(raw)} messages, and the limit is {MAX_MESSAGES}")
    names: dict[str, str] = {}  # of tool calls, by id
    messages = [part for entry in raw for part in _message(entry, names)]
    system = washed.get("systemPrompt")
    letters = sum(len(text) for text in _prose(messages, system))
    if letters > MAX_PROSE:
        raise _bad(f"its texts have {letters:,} characters, and the limit is {MAX_PROSE:,}")
    wanted = washed.get("maxTokens")
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        raise _bad("maxTokens is no number of tokens")
    return SampleRequest(
        system=system if isinstance(system, str) else "",
        messages=tuple(messages),
        max_tokens=min(wanted, 1_000_000),
        temperature=_temperature(washed.get("temperature")),
        stop=tuple(text for text in _list(washed.get("stopSequences")) if isinstance(text, str))[
            :8
        ],
        tools=_tools(washed),
    )


def describe(
    params: Mapping[str, Any], request: SampleRequest, *, model: str, tool: str
) -> tuple[str, ...]:
    """Say what else there is to a request: who answers, what was wished, what rides along."""
    facts = [told_call(tool), f"{clip(model, 80) or 'the model of this session'} answers"]
    wishes = params.get("modelPreferences")
    if isinstance(wishes, Mapping) and (words := _wishes(wishes)):
        facts.append(f"it would like {words}")
    media = [
        as_text([part])
        for message in request.messages
        if isinstance(message, UserMessage)
        for part in message.content
        if not isinstance(part, Text)
    ]
    facts += [f"with {clip(', '.join(media), 200)}"] if media else []
    results = sum(isinstance(message, ToolMessage) for message in request.messages)
    facts += [f"with {results} results of its own tools"] if results else []
    if request.tools:
        facts.append(f"the model may ask for {clip(', '.join(t.name for t in request.tools), 200)}")
    if request.temperature is not None:
        facts.append(f"temperature {request.temperature:g}")
    if params.get("includeContext") in ("thisServer", "allServers"):
        facts.append("it asked for the conversation too, which it does not get")
    return tuple(facts)


def _wishes(wishes: Mapping[str, Any]) -> str:
    hints = [
        clip(hint["name"], 60)
        for hint in _list(wishes.get("hints"))[:5]
        if isinstance(hint, Mapping) and isinstance(hint.get("name"), str)
    ]
    ranks = [
        f"{word} {value:g}"
        for key, word in (
            ("costPriority", "cheap"),
            ("speedPriority", "fast"),
            ("intelligencePriority", "clever"),
        )
        if isinstance(value := wishes.get(key), int | float) and not isinstance(value, bool)
    ]
    return ", ".join([*hints, *ranks])


def _message(entry: object, names: dict[str, str]) -> list[Message]:
    if not isinstance(entry, Mapping) or entry.get("role") not in ("user", "assistant"):
        raise _bad("a message has no role")
    blocks = entry.get("content")
    blocks = blocks if isinstance(blocks, list) else [blocks]
    if entry["role"] == "assistant":
        parts = tuple(_part(block, names) for block in blocks)
        calls = any(isinstance(part, ToolCall) for part in parts)
        stop = Stop.TOOLS if calls else Stop.END
        return [AssistantMessage(parts=parts, model="", stop=stop)] if parts else []
    made: list[Message] = []
    content: list[Content] = []
    for block in blocks:
        if isinstance(block, Mapping) and block.get("type") == "tool_result":
            made.append(_tool_result(block, names))
        else:
            content.append(_content(block))
    return [*made, *([UserMessage(content=tuple(content))] if content else [])]


def _part(block: object, names: dict[str, str]) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "tool_use", "id": str(call_id), "name": str(name), "input": dict(given)}:
            names[call_id] = name
            return ToolCall(id=call_id, name=name, arguments=given)
        case {"type": "image" | "audio" as kind}:
            return Text(f"[{kind} of the assistant, left out]")
    raise _bad("a message holds a part kage cannot read")


def _content(block: object) -> Content:
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "image", "data": str(data), "mimeType": str(mime)}:
            return Image(data=data, mime=clip(mime, 200))
        case {"type": "audio", "data": str(data), "mimeType": str(mime)}:
            return Audio(data=data, mime=clip(mime, 200))
    raise _bad("a message holds a part kage cannot read")


def _tool_result(block: Mapping[str, Any], names: Mapping[str, str]) -> ToolMessage:
    call_id = block.get("toolUseId")
    if not isinstance(call_id, str) or call_id not in names:
        raise _bad("a tool result belongs to no call")
    content = tuple(_content(part) for part in _list(block.get("content")))
    failed = block.get("isError") is True
    return ToolMessage(
        call_id=call_id,
        name=names[call_id],
        outcome=Outcome.TOOL_ERROR if failed else Outcome.OK,
        content=content,
    )


def _tools(params: Mapping[str, Any]) -> tuple[ToolSpec, ...]:
    choice = params.get("toolChoice")
    if isinstance(choice, Mapping) and choice.get("mode") == "none":
        return ()
    entries = _list(params.get("tools"))
    if len(entries) > MAX_TOOLS:
        raise _bad(f"it brings {len(entries)} tools, and the limit is {MAX_TOOLS}")
    return tuple(_tool(entry) for entry in entries)


def _tool(entry: object) -> ToolSpec:
    match entry:
        case {"name": str(name), "inputSchema": dict(schema)} if _TOOL_NAME.fullmatch(name):
            words = entry.get("description") if isinstance(entry, Mapping) else ""
            description = clip(words, 4_000) if isinstance(words, str) else ""
            return ToolSpec(name=name, description=description, schema=schema, risk=Risk.EXEC)
    raise _bad("it brings a tool without a usable name or schema")


def _prose(messages: list[Message], system: object) -> list[str]:
    texts = [system] if isinstance(system, str) else []
    for message in messages:
        held = message.parts if isinstance(message, AssistantMessage) else message.content
        texts += [part.text for part in held if isinstance(part, Text)]
    return texts


def _temperature(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return min(2.0, max(0.0, float(value))) if abs(value) < 1e6 and math.isfinite(value) else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _bad(why: str) -> Unanswerable:
    return Unanswerable(why, code=INVALID)
