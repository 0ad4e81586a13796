"""What a message or a tool result is made of: text, images, audio, resources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text; ``own`` is a remark of kage's among the parts of a result."""

    text: str
    own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture; ``data`` is base64."""

    data: str
    mime: str
    path: str = ""  # a file that holds the same, "" when there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Audio:
    """A sound; ``data`` is base64."""

    data: str
    mime: str
    path: str = ""  # as for a picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource a server embedded: exactly one of ``text`` and ``blob`` (base64) is set."""

    uri: str
    mime: str = ""
    text: str | None = None
    blob: str | None = None
    path: str = ""  # as for a picture


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLink:
    """A resource a server only points at; kage never fetches it by itself."""

    uri: str
    name: str = ""
    mime: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """Content that went into a file of the session and not to the model."""

    path: str
    of: str  # "text", "image", "audio" or "resource"
    mime: str = ""
    size: int = 0  # bytes
    uri: str = ""  # of a resource


NOTE = "[kage: "  # how kage's own remarks begin; one that a server writes is an imitation

Content = Text | Image | Audio | Resource | ResourceLink | Artifact


def decoded_size(data: str) -> int:
    """Give the bytes that base64 text stands for, without decoding it."""
    return len(data) * 3 // 4 - data[-2:].count("=")


def as_text(parts: Iterable[Content]) -> str:
    """Give the text view of ``parts``; what has no text is named, never dropped."""
    lines: list[str] = []
    for part in parts:
        match part:
            case Text(text):
                lines.append(text)
            case Image() | Audio():
                kind = type(part).__name__.lower()
                size = decoded_size(part.data)
                lines.append(f"[{kind} {part.mime}, {size} bytes{_where(part.path)}]")
            case Resource():
                size = decoded_size(part.blob or "")
                named = f"[{part.uri}, {size} bytes{_where(part.path)}]"
                lines.append(part.text if part.text is not None else named)
            case ResourceLink():
                lines.append(f"[{part.name or 'resource'}: {part.uri}]")
            case Artifact():
                facts = (f"{part.of} {part.uri}".strip(), part.mime, f"{part.size} bytes")
                lines.append(f"[{', '.join(filter(None, facts))}{_where(part.path)}]")
    return "\n".join(lines)


def _where(path: str) -> str:
    return f", in the file {path}" if path else ""
