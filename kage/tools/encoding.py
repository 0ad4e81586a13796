"""Tell text from binary and say in which encoding a text file is."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

SNIFF = 8192  # bytes looked at; what git and grep look at too

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it starts with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\x7fELF", "application/x-elf"),
    (b"BZh91AY&SY", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "application/x-xz"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
)

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")  # what models can look at
_STARTS = tuple(magic for magic, _ in _MAGIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How the bytes of a text file become text; ``mark`` are the bytes before the text."""

    name: str = "utf-8"
    mark: bytes = b""


def sniff(head: bytes) -> Encoding | None:
    """Tell the encoding from the first bytes; None for binary data."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return Encoding(name=name, mark=mark)
    if b"\0" in head[:SNIFF] or media_type(head):
        return None
    return Encoding()


def media_type(head: bytes) -> str:
    """Name the type of binary data by its first bytes, "" when it is not a known one."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if not head.startswith(_STARTS):  # text, mostly: one look instead of one per type
        return ""
    return next(name for magic, name in _MAGIC if head.startswith(magic))


def size(count: int) -> str:
    """Write a number of bytes for people: ``312 bytes``, ``4.2 MB``."""
    if count < 1000:
        return f"{count} bytes" if count != 1 else "1 byte"
    amount = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        amount /= 1000
        if amount < 999.95 or unit == "TB":
            break
    return f"{amount:.1f} {unit}"
