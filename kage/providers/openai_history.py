"""A conversation as Chat Completions endpoints take it, each message rendered once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from kage.core.content import Audio, Content, Image, Text
from kage.core.messages import Message, Outcome, Thinking, ToolCall, UserMessage
from kage.providers.history import (
    NEVER_RUN,
    Answer,
    Entry,
    Result,
    Stray,
    arrange,
    dump,
    entry_key,
    message_id,
)
from kage.providers.media import Takes, portray

REASONING = ("reasoning_content", "reasoning")  # the fields endpoints stream reasoning in
DETAILS = "reasoning_details"
EXTRA = "extra_content:"  # then the id of the call it belongs to

_BELOW = "(the pictures and sounds follow in the next message)"
_MAX_IMAGE = 20 << 20  # characters of base64
_NOTHING = Takes()


class OpenAIHistory:
    """Renders messages and keeps the rendering of those of the last request.

    ``model`` is the id whose reasoning goes back to it, in the field it came in; what it takes
    besides words is ``images`` and ``audio``.
    """

    def __init__(self, model: str, *, images: bool = True, audio: bool = False) -> None:
        self._model = model
        self._takes = Takes(images=images, audio=audio, image_size=_MAX_IMAGE)
        self._kept: dict[tuple[Any, ...], tuple[str, tuple[str, ...]]] = {}

    def render(
        self,
        system: str,
        messages: Sequence[Message],
        *,
        reasoning: bool = True,
        unseen: frozenset[str] = frozenset(),
    ) -> str:
        """Give the JSON list for ``system`` and ``messages``.

        Reasoning goes back only inside the chain of calls under way: earlier one is of no use
        to the model, and some endpoints refuse it. Pictures and sounds of ``unseen`` messages are
        named in words.
        """
        entries = arrange(messages)
        chain = max(
            (at for at, entry in enumerate(entries) if isinstance(entry, UserMessage)), default=-1
        )
        kept: dict[tuple[Any, ...], tuple[str, tuple[str, ...]]] = {}
        out: list[str] = [dump({"role": "system", "content": system})] if system.strip() else []
        media: list[str] = []
        for at, entry in enumerate(entries):
            if media and not isinstance(entry, Result):
                out.append(_shown(media))
                media = []
            think = reasoning and at > chain
            takes = _NOTHING if message_id(entry) in unseen else self._takes
            key = (*entry_key(entry), think, takes)
            held = self._kept.get(key)
            if held is None:
                held = self._message(entry, takes, reasoning=think)
            kept[key] = held
            if held[0]:
                out.append(held[0])
            media += held[1]
        if media:
            out.append(_shown(media))
        self._kept = kept
        return "[" + ",".join(out) + "]"

    def _message(
        self, entry: Entry, takes: Takes, *, reasoning: bool
    ) -> tuple[str, tuple[str, ...]]:
        """Give the message, and media that have to follow it in a message of their own."""
        match entry:
            case UserMessage():
                return _user(entry.content, takes), ()
            case Stray(message=message):
                head = Text(f"Result of {message.name}, called by hand:")
                return _user((head, *message.content), takes), ()
            case Result():
                return _result(entry, takes)
            case Answer():
                return self._answer(entry, reasoning=reasoning), ()

    def _answer(self, entry: Answer, *, reasoning: bool) -> str:
        message = entry.message
        wanted = {call.id for call in entry.calls}
        own = message.model == self._model
        thoughts = [part for part in message.parts if isinstance(part, Thinking) and own]
        extras = {part.signature: part.redacted for part in thoughts if part.redacted}
        calls: list[dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, ToolCall) and part.id in wanted:
                calls.append(_call(part, extras.get(EXTRA + part.id, "")))
        text = message.text
        if not text.strip() and not calls:
            return ""
        out: dict[str, Any] = {"role": "assistant", "content": text if text.strip() else None}
        if calls:
            out["tool_calls"] = calls
        if reasoning and calls:
            for name in REASONING:
                said = "".join(part.text for part in thoughts if part.signature == name)
                if said:
                    out[name] = said
            details = _json(extras.get(DETAILS, ""))
            if details is not None:
                out[DETAILS] = details
        return dump(out)


def _call(call: ToolCall, extra: str) -> dict[str, Any]:
    arguments = call.broken if call.broken is not None else dump(dict(call.arguments))
    if call.broken is not None and not _is_object(call.broken):
        arguments = dump({"unreadable": call.broken})  # templates of local models parse it
    out: dict[str, Any] = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }
    content = _json(extra)
    if content is not None:
        out["extra_content"] = content
    return out


def _is_object(text: str) -> bool:
    return isinstance(_json(text), dict)


def _json(text: str) -> object:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None


def _user(parts: Iterable[Content], takes: Takes) -> str:
    content: list[dict[str, Any]] = []
    for part in parts:
        match portray(part, takes):
            case Image() | Audio() as medium:
                content.append(_medium(medium))
            case str(text) if text.strip():
                content.append({"type": "text", "text": text})
    if not content:
        return ""
    if all(block["type"] == "text" for block in content):  # some endpoints take only strings
        return dump({"role": "user", "content": "\n\n".join(b["text"] for b in content)})
    return dump({"role": "user", "content": content})


def _medium(part: Image | Audio) -> dict[str, Any]:
    if isinstance(part, Audio):
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.mime}}
    return {"type": "image_url", "image_url": {"url": f"data:{part.mime};base64,{part.data}"}}


def _result(entry: Result, takes: Takes) -> tuple[str, tuple[str, ...]]:
    """Give a result as text, since a tool message takes nothing else; media follow."""
    lines: list[str] = []
    media: list[str] = []
    message = entry.message
    if message is None:
        lines.append(NEVER_RUN)
    else:
        if message.outcome is not Outcome.OK:
            lines.append(f"[{_OUTCOMES[message.outcome]}]")
        for part in message.content:
            match portray(part, takes):
                case Image() | Audio() as medium:
                    media.append(dump(_medium(medium)))
                case str(text):
                    lines.append(text)
        if media:
            lines.append(_BELOW)
    text = "\n".join(line for line in lines if line) or "(no output)"
    out = {"role": "tool", "tool_call_id": entry.call.id, "content": text}
    if media:
        label = dump({"type": "text", "text": f"From the result of {entry.call.name}:"})
        return dump(out), (label, *media)
    return dump(out), ()


_OUTCOMES = {
    Outcome.OK: "ok",
    Outcome.TOOL_ERROR: "error",
    Outcome.REFUSED: "refused",
    Outcome.NEVER_SENT: "never sent",
    Outcome.UNKNOWN: "outcome unknown",
}


def _shown(blocks: Sequence[str]) -> str:
    return f'{{"role":"user","content":[{",".join(blocks)}]}}'
