"""Long base64: in arguments it may carry something out, elsewhere it may hide words."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from kage.permissions.scanners.flag import Code, Flag, Kind, flag

LEAST = 160  # characters; hashes, tokens and signatures are shorter
_MOST = 40_000  # characters decoded of one piece
_PIECES = 8  # looked at in one text
_RUN = re.compile(
    r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{40,}(?:\r?\n[A-Za-z0-9+/_-]{40,})*(?:\r?\n[A-Za-z0-9+/_-]+)?"
)
_MEDIA = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"%PDF", b"wOFF", b"wOF2", b"ID3", b"OggS",
          b"\x00\x00\x01\x00", b"\x00asm", b"BM", b"\x00\x01\x00\x00", b"OTTO")  # fmt: skip
_PEM = re.compile(r"-----BEGIN (?:CERTIFICATE|PUBLIC KEY|PGP[A-Z ]*)[A-Z ]*-----\s*$")


def encoded(text: str, kind: Kind) -> Iterator[Flag]:
    """Find base64 that is no picture, sound, font, document or certificate."""
    if len(text) < LEAST:
        return
    for count, found in enumerate(_RUN.finditer(text)):
        if count >= _PIECES:
            return
        if len(found[0]) < LEAST or not _mixed(found[0]):
            continue
        words = _hidden_words(text, found, kind)
        if words is not None:
            yield flag(Code.BASE64, words)
            return


def decoded(text: str) -> Iterator[str]:
    """Give the words that base64 in ``text`` stands for."""
    if len(text) < LEAST:
        return
    for count, found in enumerate(_RUN.finditer(text)):
        raw = _bytes(found[0]) if len(found[0]) >= LEAST and count < _PIECES else None
        if raw is not None and (said := _said(raw)):
            yield said


def _hidden_words(text: str, found: re.Match[str], kind: Kind) -> str | None:
    raw = _bytes(found[0])
    if raw is None or raw.startswith(_MEDIA) or b"ftyp" in raw[4:8]:
        return None
    if _PEM.search(text, max(0, found.start() - 60), found.start()):
        return None
    if said := _said(raw):
        return f"it says: {said[:40]}"
    return f"{len(found[0]):,} characters" if kind is Kind.ARGUMENTS else None


def _mixed(piece: str) -> bool:
    """Say whether it can be base64: a path, a hash or a long word is of one kind."""
    head = piece[:400]
    return (
        any(c.islower() for c in head)
        and any(c.isupper() for c in head)
        and any(c.isdigit() for c in head)
        and head.count("/") * 12 < len(head)
        and head.count("-") * 12 < len(head)
        and head.count("_") * 12 < len(head)
    )


def _bytes(piece: str) -> bytes | None:
    joined = re.sub(r"\s", "", piece)[:_MOST].translate(str.maketrans("-_", "+/"))
    try:
        return base64.b64decode(joined[: len(joined) // 4 * 4])
    except (binascii.Error, ValueError):
        return None


def _said(raw: bytes) -> str:
    """Give the text of ``raw``, "" when it is none."""
    try:
        text = raw[:2000].decode()
    except UnicodeDecodeError as error:
        if error.start < len(raw[:2000]) - 4:
            return ""
        text = raw[: error.start].decode()
    good = sum(c.isprintable() or c in "\n\t\r" for c in text)
    return raw.decode("utf-8", "replace") if good > 0.95 * len(text) else ""
