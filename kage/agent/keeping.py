"""Where the parts of a result go: to the model, or into a file of the session."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import replace

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
from kage.core.sanitise import clip
from kage.core.tools import Handling
from kage.sessions.artifacts import Artifacts, NotKept

MAX_KEPT = 500  # files of one result
_MAX_URI = 300  # characters of an address in a sentence
_TOO_MANY = "the result has too many parts"
_BROKEN = "it is no valid base64"


def routed(
    parts: list[Content],
    handling: Handling,
    artifacts: Artifacts,
    *,
    name: str,
    redact: Callable[[str], str],
) -> list[Content]:
    """Send each part where ``handling`` says; bytes that go to the model get a copy in a file.

    Bytes that cannot be kept in the file they were meant for say so in their place; words go to
    the model then.
    """
    out: list[Content] = []
    left = MAX_KEPT
    for part in parts:
        wanted = handling.output.get(_kind(part), "model") == "artifact"
        if not (wanted or _bare(part)):
            out.append(part)
            continue
        found = _kept(part, artifacts, name=name, redact=redact) if left > 0 else _TOO_MANY
        left -= 1
        match found:
            case Artifact():
                out.append(found if wanted else _beside(part, found))
            case str(why) if wanted or why is _BROKEN:
                out.append(_unkept(part, why))
            case _:
                out.append(part)
    return out


def _kept(
    part: Content, artifacts: Artifacts, *, name: str, redact: Callable[[str], str]
) -> Artifact | str:
    """Write ``part`` to a file and give what names it, or why there is none."""
    data, mime = _bytes(part, redact)
    if data is None:
        return _BROKEN
    try:
        path = artifacts.keep(data, name=name, mime=mime)
    except NotKept as error:
        return str(error)
    uri = clip(part.uri, _MAX_URI) if isinstance(part, Resource) else ""
    return Artifact(path=str(path), of=_kind(part), mime=mime, size=len(data), uri=uri)


def _kind(part: Content) -> str:
    """Give the word ``output`` has for a part; "" for what is only a name, or kage's own."""
    match part:
        case Text(own=True):
            return ""
        case Text():
            return "text"
        case Image():
            return "image"
        case Audio():
            return "audio"
        case Resource():
            return "resource"
        case ResourceLink() | Artifact():
            return ""


def _bare(part: Content) -> bool:
    """Say whether a part is bytes no file holds yet."""
    match part:
        case Image(path="") | Audio(path="") | Resource(text=None, path=""):
            return True
        case _:
            return False


def _beside(part: Content, artifact: Artifact) -> Content:
    match part:
        case Image() | Audio() | Resource():
            return replace(part, path=artifact.path)
        case _:
            return part


def _bytes(part: Content, redact: Callable[[str], str]) -> tuple[bytes | None, str]:
    """Give what a file of ``part`` would hold, None for broken base64, and its type."""
    match part:
        case Text(text):
            return text.encode("utf-8", "replace"), "text/plain"
        case Resource(text=str(text)):
            return text.encode("utf-8", "replace"), part.mime
        case Image() | Audio():
            return _decoded(part.data), part.mime
        case Resource():
            return _cleaned(_decoded(part.blob or ""), redact), part.mime
        case ResourceLink() | Artifact():
            return None, ""


def _decoded(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def _cleaned(data: bytes | None, redact: Callable[[str], str]) -> bytes | None:
    """Take secrets out of bytes that are words."""
    try:
        return None if data is None else redact(data.decode()).encode()
    except UnicodeDecodeError:
        return data


def _unkept(part: Content, why: str) -> Content:
    """Give what stands for a part no file could be made of; its words are never lost."""
    match part:
        case Text() | Resource(text=str()) | ResourceLink() | Artifact():
            return part
        case Image() | Audio() | Resource():
            size = decoded_size(part.blob or "" if isinstance(part, Resource) else part.data)
            what = f"{_kind(part)} {part.mime}".strip()
            return Text(f"[{what} of about {size} bytes was left out: {why}]")
