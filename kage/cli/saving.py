"""Write what a result holds to the file a person named: bytes as they are, else its text."""

from __future__ import annotations

import base64
import binascii
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from kage.core.content import Artifact, Audio, Content, Image, Resource, as_text
from kage.core.errors import UsageError
from kage.core.sanitise import visible


def bytes_of(part: Content) -> bytes | None:
    """Give the bytes a part carries; None for words, and for what is no valid base64."""
    match part:
        case Image() | Audio():
            data = part.data
        case Resource(blob=str(data)) if part.text is None:
            pass
        case _:
            return None
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def unkept(part: Content) -> bool:
    """Say whether a part has bytes that no file holds."""
    return bytes_of(part) is not None and not getattr(part, "path", "")


def write_one(path: Path, content: Sequence[Content]) -> None:
    """Write all parts to one file, in their order.

    Raises:
        UsageError: it cannot be written.
    """
    pieces = [_piece(part) for part in content]
    _write(path, b"".join(pieces))


def write_each(path: Path, content: Sequence[Content]) -> tuple[Content, ...]:
    """Write each part that carries bytes to a file of its own, and give all parts naming theirs.

    The first is ``path``; a second one of ``a.png`` is ``a-2.png``. In a folder that is there,
    files are numbered and get the extension of their type. Without any such part the text goes to
    ``path``.

    Raises:
        UsageError: one of them cannot be written.
    """
    out: list[Content] = []
    number = 0
    for part in content:
        data = bytes_of(part)
        if data is None or not isinstance(part, Image | Audio | Resource):
            out.append(part)
            continue
        number += 1
        if path.is_dir():
            target = _keep(path, part, data)
        else:
            target = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
            _write(target, data)
        out.append(replace(part, path=str(target)))
    if not number and not path.is_dir():
        write_one(path, content)
        return (Artifact(path=str(path), of="text", mime="text/plain", size=path.stat().st_size),)
    return tuple(out)


def _piece(part: Content) -> bytes:
    data = bytes_of(part)
    return as_text((part,)).encode("utf-8", "replace") if data is None else data


def _keep(folder: Path, part: Content, data: bytes) -> Path:
    """Write to a new file of the folder; what is there is never written over."""
    from kage.sessions.artifacts import extension

    kind = type(part).__name__.lower()
    mime = part.mime if isinstance(part, Image | Audio | Resource) else ""
    for number in itertools.count(1):
        path = folder / f"{kind}-{number}.{extension(mime, data)}"
        if not path.is_symlink() and not path.exists():
            _write(path, data, mode="xb")
            return path
    raise AssertionError  # a count never ends


def _write(path: Path, data: bytes, mode: Literal["wb", "xb"] = "wb") -> None:
    try:
        with path.open(mode) as file:
            file.write(data)
    except OSError as error:
        what = f"{visible(str(path), single_line=True)} cannot be written"
        raise UsageError(what, why=error.strerror or str(error)) from error
