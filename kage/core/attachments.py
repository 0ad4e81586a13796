"""What a person typed in a message, apart from what was attached to it."""

from __future__ import annotations

from collections.abc import Iterable

from kage.core.content import (
    Artifact,
    Audio,
    Content,
    Image,
    Resource,
    ResourceLink,
    Text,
    decoded_size,
)


def typed(parts: Iterable[Content]) -> str:
    """Give the words of a message without what is attached to it."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def attached(parts: Iterable[Content]) -> tuple[str, ...]:
    """Name each attachment of a message with its size, one line each."""
    return tuple(_named(part) for part in parts if not isinstance(part, Text))


def shown(parts: Iterable[Content]) -> str:
    """Give a message as a person reads it: the words, then a line for each attachment."""
    held = tuple(parts)
    return "\n".join([typed(held), *(f"+ {line}" for line in attached(held))])


def size(count: int) -> str:
    """Write a number of bytes for a person."""
    if count < 1_000:
        return f"{count} bytes"
    return f"{count / 1_000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def _named(part: Content) -> str:
    match part:
        case Text(text):
            return text
        case Resource(text=str(text)):
            return f"{part.uri}  {size(len(text.encode('utf-8', 'replace')))}"
        case Resource():
            return f"{part.uri}  {part.mime or 'bytes'}, {size(decoded_size(part.blob or ''))}"
        case Image() | Audio():
            kind = type(part).__name__.lower()
            return f"{kind} {part.mime}, {size(decoded_size(part.data))}"
        case ResourceLink():
            return f"link {part.uri}"
        case Artifact():
            return f"{part.uri or part.of}, {size(part.size)}, in {part.path}"
