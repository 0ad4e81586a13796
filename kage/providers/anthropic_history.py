"""A conversation as Anthropic's Messages API takes it, each message rendered once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kage.core.content import Content, Image, Text
from kage.core.messages import Message, Thinking, ToolCall, UserMessage
from kage.providers.history import (
    NEVER_RUN,
    Answer,
    Entry,
    Result,
    Stray,
    arrange,
    dump,
    entry_key,
    failed,
    message_id,
)
from kage.providers.media import Takes, portray

CACHE = ',"cache_control":{"type":"ephemeral"}}'

_IN_ERRORS = Takes(why_not="the result of a failed call takes only text")

Blocks = tuple[str, ...]  # JSON objects, as text


class AnthropicHistory:
    """Renders messages and keeps the rendering of those of the last request.

    ``model`` is the id whose thinking goes back; other models' signatures mean nothing to it.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._kept: dict[tuple[Any, ...], Blocks] = {}

    def render(
        self,
        messages: Sequence[Message],
        *,
        forgotten: frozenset[str] = frozenset(),
        unseen: frozenset[str] = frozenset(),
        caching: bool = True,
    ) -> str:
        """Give the JSON list for ``messages``; the last two user turns end a cached prefix.

        Of ``forgotten`` messages no thinking goes back, of ``unseen`` ones no pictures.
        """
        kept: dict[tuple[Any, ...], Blocks] = {}
        turns: list[tuple[str, list[str]]] = []
        for entry in arrange(messages):
            role = "assistant" if isinstance(entry, Answer) else "user"
            name = message_id(entry)
            thinking, images = name not in forgotten, name not in unseen
            key = (*entry_key(entry), thinking, images)
            blocks = self._kept.get(key)
            if blocks is None:
                blocks = self._blocks(entry, thinking=thinking, images=images)
            kept[key] = blocks
            if not blocks:
                continue
            if turns and turns[-1][0] == role:
                turns[-1][1].extend(blocks)
            else:
                turns.append((role, list(blocks)))
        self._kept = kept
        if not turns or turns[0][0] != "user":
            turns.insert(0, ("user", [_text("(The beginning of the conversation is gone.)")]))
        if turns[-1][0] != "user":  # the API answers the person, never itself
            turns.append(("user", [_text("Go on.")]))
        users = [said for role, said in turns if role == "user"]
        for last in users[-2:] if caching else ():
            last[-1] = last[-1][:-1] + CACHE
        return "[" + ",".join(_turn(role, blocks) for role, blocks in turns) + "]"

    def thinks_last(self, messages: Sequence[Message]) -> bool:
        """Tell whether the newest answer with calls still carries its thinking.

        With a thinking budget the API demands it while a chain of calls is going on.
        """
        for entry in reversed(arrange(messages)):
            match entry:
                case UserMessage():
                    return True
                case Answer() if entry.calls:
                    return any(
                        isinstance(part, Thinking) and self._own(entry, part)
                        for part in entry.message.parts
                    )
                case _:
                    pass
        return True

    def _own(self, entry: Answer, part: Thinking) -> bool:
        return entry.message.model == self._model and bool(part.signature or part.redacted)

    def _blocks(self, entry: Entry, *, thinking: bool, images: bool) -> Blocks:
        match entry:
            case UserMessage():
                return _content(entry.content, Takes(images=images))
            case Stray(message=message):
                head = _text(f"Result of {message.name}, called by hand:")
                return (head, *_content(message.content, Takes(images=images)))
            case Result():
                return (_result(entry, Takes(images=images)),)
            case Answer():
                return self._answer(entry, thinking=thinking)

    def _answer(self, entry: Answer, *, thinking: bool) -> Blocks:
        blocks: list[tuple[bool, str]] = []
        wanted = {call.id for call in entry.calls}
        for part in entry.message.parts:
            match part:
                case Text(text):
                    if text.strip():
                        blocks.append((False, _text(text)))
                case Thinking():
                    if thinking and self._own(entry, part):
                        blocks.append((True, _thought(part)))
                case ToolCall():
                    if part.id in wanted:
                        use = {
                            "type": "tool_use",
                            "id": part.id,
                            "name": part.name,
                            "input": _input(part),
                        }
                        blocks.append((False, dump(use)))
        while blocks and blocks[-1][0]:  # an answer may not end in thinking
            blocks.pop()
        return tuple(text for _, text in blocks)


def _turn(role: str, blocks: Iterable[str]) -> str:
    return f'{{"role":"{role}","content":[{",".join(blocks)}]}}'


def _text(text: str) -> str:
    return dump({"type": "text", "text": text})


def _thought(part: Thinking) -> str:
    if part.redacted:
        return dump({"type": "redacted_thinking", "data": part.redacted})
    return dump({"type": "thinking", "thinking": part.text, "signature": part.signature})


def _input(call: ToolCall) -> object:
    """Give the arguments as an object, which the API demands even of broken ones."""
    return {"unreadable": call.broken} if call.broken is not None else dict(call.arguments)


def _result(entry: Result, takes: Takes) -> str:
    block: dict[str, object] = {"type": "tool_result", "tool_use_id": entry.call.id}
    if failed(entry):
        block["is_error"] = True
        takes = _IN_ERRORS if takes.images else takes
    content = _content(entry.message.content, takes) if entry.message else ()
    if entry.message is None:
        content = (_text(NEVER_RUN),)
    return dump(block)[:-1] + f',"content":[{",".join(content)}]}}'


def _content(parts: Iterable[Content], takes: Takes) -> Blocks:
    blocks: list[str] = []
    for part in parts:
        match portray(part, takes):
            case Image(data=data, mime=mime):
                source = {"type": "base64", "media_type": mime, "data": data}
                blocks.append(dump({"type": "image", "source": source}))
            case str(text) if text.strip():
                blocks.append(_text(text))
    return tuple(blocks)
