"""Which pictures and sounds a model can take, and the words that stand in for what it cannot."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from kage.core.content import Artifact, Audio, Content, Image, Resource, ResourceLink, Text, as_text

MAX_IMAGE = 5 << 20  # characters of base64; the narrowest limit a vendor has for one picture
MAX_AUDIO = 20 << 20  # characters of base64

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_SOUNDS = ((b"ID3", "mp3"), (b"\xff\xfb", "mp3"), (b"\xff\xf3", "mp3"), (b"\xff\xf2", "mp3"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Takes:
    """What a message to a model may hold besides words."""

    images: bool = False
    audio: bool = False
    image_size: int = MAX_IMAGE  # characters of base64
    why_not: str = ""  # why it takes no pictures here, when it is not the model


def portray(part: Content, takes: Takes) -> Image | Audio | str:
    """Give the picture or sound in ``part`` with its true type, or words that stand in for it.

    The type of a sound is "wav" or "mp3". One broken picture in a conversation makes endpoints
    refuse every later request, so the bytes are looked at, not the label.
    """
    match part:
        case Image(data=data):
            return _picture(part, data, takes)
        case Resource(blob=str(data)) if part.mime.lower().startswith("image/"):
            return _picture(part, data, takes)
        case Audio(data=data):
            return _sound(part, data, takes)
        case Resource(blob=str(data)) if part.mime.lower().startswith("audio/"):
            return _sound(part, data, takes)
    return words(part)


def words(part: Content, why: str = "this model cannot take it") -> str:
    """Give the text view of a part; what is left out is named with its size and its file."""
    match part:
        case Text(text):
            return text
        case Resource(text=str(text)):
            return f"[resource {part.uri}]\n{text}" if part.uri else text
        case Image() | Audio() | Resource():
            return f"{as_text((part,))} (left out: {why})"
        case Artifact():
            return f"{as_text((part,))} (kept there instead of being shown here)"
        case ResourceLink():
            note = f" - {part.description}" if part.description else ""
            return as_text((part,)) + note


def _picture(part: Content, data: str, takes: Takes) -> Image | str:
    if not takes.images:
        return words(part, takes.why_not or "this model cannot take it")
    if len(data) > takes.image_size:
        most = takes.image_size * 3 // 4 / 1_000_000
        return words(part, f"a picture may have {most:.1f} MB for this model")
    raw = _decoded(data)
    mime = next((mime for magic, mime in _MAGIC if raw.startswith(magic)), "")
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        mime = "image/webp"
    if not mime or len(raw) <= 16:
        return words(part, "it is no PNG, JPEG, GIF or WebP a model can read")
    return Image(data=data, mime=mime)


def _sound(part: Content, data: str, takes: Takes) -> Audio | str:
    if not takes.audio:
        return words(part)
    if len(data) > MAX_AUDIO:
        return words(part, "it is too large for the model")
    raw = _decoded(data)
    kind = next((kind for magic, kind in _SOUNDS if raw.startswith(magic)), "")
    if raw[:4] == b"RIFF" and raw[8:12] == b"WAVE":
        kind = "wav"
    if not kind or len(raw) <= 16:
        return words(part, "it is no WAV or MP3, which is what the model takes")
    return Audio(data=data, mime=kind)


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return b""
