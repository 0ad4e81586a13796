"""Read what servers say of prompts and resources: bad entries are named, never the whole lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from kage.core.content import Content, Resource, Text
from kage.core.offers import (
    MOST_COMPLETIONS,
    FilledPrompt,
    Offers,
    PromptArgument,
    PromptMessage,
    PromptOffer,
    ResourceOffer,
    TemplateOffer,
)
from kage.core.sanitise import clip, visible
from kage.mcp.client.calling.results import part

T = TypeVar("T")

MAX_ARGUMENTS = 100  # of one prompt
MAX_MESSAGES = 200  # of one prompt
MAX_PARTS = 200  # of one resource
_MAX_NAME = 512  # characters
_MAX_URI = 2_048  # characters
_MAX_TEXT = 1_000  # characters of a title or description
_MAX_VALUE = 1_000  # characters of a completion
_MAX_DROPPED = 20  # reasons kept of one list


class Misread(Exception):
    """The server answered a request with something else; the text says what."""


def read(
    server: str,
    listed: Mapping[str, Iterable[Mapping[str, Any]]],
    *,
    completes: bool,
    watches: bool,
    notes: tuple[str, ...] = (),
) -> Offers:
    """Type the lists of one server; what cannot be used is left out with its reason."""
    dropped: list[str] = [note for note in notes if note]
    return Offers(
        server=server,
        prompts=_kept(listed.get("prompts", ()), "prompt", "name", _prompt, dropped),
        resources=_kept(listed.get("resources", ()), "resource", "uri", _resource, dropped),
        templates=_kept(listed.get("templates", ()), "template", "uriTemplate", _template, dropped),
        completes=completes,
        watches=watches,
        dropped=tuple(dropped),
    )


def contents(raw: Mapping[str, Any], server: str, uri: str) -> tuple[Content, ...] | None:
    """Read the answer of ``resources/read``; None when it holds no list of contents."""
    found = raw.get("contents")
    if not isinstance(found, list):
        return None
    parts = [_content(entry, server, uri) for entry in found[:MAX_PARTS]]
    if len(found) > MAX_PARTS:
        parts.append(Text(f"[{len(found) - MAX_PARTS} more parts were left out]"))
    return tuple(parts)


def filled(raw: Mapping[str, Any], server: str, name: str) -> FilledPrompt | None:
    """Read the answer of ``prompts/get``; None when it holds no list of messages."""
    found = raw.get("messages")
    if not isinstance(found, list):
        return None
    messages = [_message(entry, server) for entry in found[:MAX_MESSAGES]]
    if len(found) > MAX_MESSAGES:
        note = Text(f"[{len(found) - MAX_MESSAGES} more messages were left out]")
        messages.append(PromptMessage(role="user", content=(note,)))
    return FilledPrompt(
        server=server, name=name, messages=tuple(messages), description=_words(raw, "description")
    )


def values(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Read the answer of ``completion/complete``: texts a draft can hold, no doubles."""
    held = raw.get("completion")
    found = held.get("values") if isinstance(held, Mapping) else None
    if not isinstance(found, list):
        return ()
    usable = (
        value
        for value in found[:MOST_COMPLETIONS]
        if isinstance(value, str) and 0 < len(value) <= _MAX_VALUE and _is_plain(value)
    )
    return tuple(dict.fromkeys(usable))


def unread(raw: Mapping[str, Any], key: str) -> str:
    """Say why an answer without ``key`` is of no use."""
    if raw.get("resultType") == "input_required":
        return "the server asks for input that cannot be given here"
    return f"the answer holds no {key}"


def short(text: str, most: int = 200) -> str:
    """Make a name or address of a server fit for a message."""
    return clip(visible(text, single_line=True), most)


# ---- entries of a list


def _kept(
    found: Iterable[Mapping[str, Any]],
    kind: str,
    key: str,
    make: Callable[[Mapping[str, Any], str], T],
    dropped: list[str],
) -> tuple[T, ...]:
    """Keep each entry whose ``key`` is a usable text not seen before."""
    kept: dict[str, T] = {}
    left_out = 0
    for number, entry in enumerate(found, 1):
        name = entry.get(key)
        wrong = _wrong(name, kept, _MAX_NAME if key == "name" else _MAX_URI)
        if wrong or not isinstance(name, str):
            left_out += 1
            if left_out <= _MAX_DROPPED:
                called = short(name, 60) if isinstance(name, str) and name else f"number {number}"
                dropped.append(f"{kind} {called}: {wrong}")
            continue
        kept[name] = make(entry, name)
    if left_out > _MAX_DROPPED:
        dropped.append(f"{left_out - _MAX_DROPPED} more entries of the list of {kind}s")
    return tuple(kept.values())


def _wrong(name: object, kept: Mapping[str, object], most: int) -> str:
    if not isinstance(name, str) or not name.strip():
        return "it has no name"
    if len(name) > most:
        return f"its name is longer than {most} characters"
    if not _is_plain(name):
        return "its name holds control or invisible characters"
    return "its name came before" if name in kept else ""


def _is_plain(text: str) -> bool:
    """Whether a draft can hold it as it is, so that what is shown is what is sent."""
    return (text.isascii() and text.isprintable()) or visible(text, single_line=True) == text


def _prompt(entry: Mapping[str, Any], name: str) -> PromptOffer:
    found = entry.get("arguments")
    arguments: dict[str, PromptArgument] = {}
    for item in found[:MAX_ARGUMENTS] if isinstance(found, list) else ():
        called = item.get("name") if isinstance(item, Mapping) else None
        if isinstance(called, str) and not _wrong(called, arguments, _MAX_NAME):
            arguments[called] = PromptArgument(
                name=called,
                description=_words(item, "description"),
                required=item.get("required") is True,
            )
    return PromptOffer(
        name=name,
        title=_words(entry, "title"),
        description=_words(entry, "description"),
        arguments=tuple(arguments.values()),
    )


def _resource(entry: Mapping[str, Any], uri: str) -> ResourceOffer:
    size = entry.get("size")
    known = isinstance(size, int | float) and not isinstance(size, bool) and math.isfinite(size)
    return ResourceOffer(
        uri=uri,
        name=_words(entry, "name"),
        title=_words(entry, "title"),
        description=_words(entry, "description"),
        mime=_words(entry, "mimeType"),
        size=int(size) if known and size is not None and 0 <= size < 1 << 60 else None,
    )


def _template(entry: Mapping[str, Any], template: str) -> TemplateOffer:
    return TemplateOffer(
        template=template,
        name=_words(entry, "name"),
        title=_words(entry, "title"),
        description=_words(entry, "description"),
        mime=_words(entry, "mimeType"),
    )


def _words(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return clip(value, _MAX_TEXT) if isinstance(value, str) else ""


# ---- what came back


def _content(entry: object, server: str, uri: str) -> Content:
    if isinstance(entry, Mapping):
        said, mime = _uri(entry, uri), _words(entry, "mimeType")
        match entry:
            case {"text": str(text)}:
                return Resource(uri=said, mime=mime, text=text)
            case {"blob": str(blob)}:
                return Resource(uri=said, mime=mime, blob=blob)
    return Text(f"[server {server} sent a part of this resource kage cannot read]")


def _uri(entry: Mapping[Any, Any], asked: str) -> str:
    said = entry.get("uri")
    return clip(said, _MAX_URI) if isinstance(said, str) and said else asked


def _message(entry: object, server: str) -> PromptMessage:
    match entry:
        case {"role": "user" | "assistant" as role, "content": content}:
            found = content if isinstance(content, list) else [content]
            return PromptMessage(
                role=role, content=tuple(part(item, server) for item in found[:MAX_PARTS])
            )
    broken = Text(f"[server {server} sent a message of this prompt kage cannot read]")
    return PromptMessage(role="user", content=(broken,))
