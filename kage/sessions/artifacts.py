"""Files a result carried, kept in the session's folder: named, capped, never half-written."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import threading
from dataclasses import dataclass
from pathlib import Path

MAX_FILE = 64 << 20  # bytes of one artifact
MAX_ALL = 2 << 30  # bytes of all artifacts of one session
_STEM = 60  # characters of the words in a name
_NUMBER = re.compile(r"(\d{1,9})-")
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# written out, since what the system's own table says differs from machine to machine
_BY_MIME = {
    "application/gzip": "gz",
    "application/json": "json",
    "application/pdf": "pdf",
    "application/sql": "sql",
    "application/toml": "toml",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.sqlite3": "sqlite",
    "application/wasm": "wasm",
    "application/x-ndjson": "jsonl",
    "application/x-tar": "tar",
    "application/x-yaml": "yaml",
    "application/xml": "xml",
    "application/yaml": "yaml",
    "application/zip": "zip",
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "audio/wave": "wav",
    "audio/webm": "weba",
    "audio/x-wav": "wav",
    "image/avif": "avif",
    "image/bmp": "bmp",
    "image/gif": "gif",
    "image/heic": "heic",
    "image/jpeg": "jpg",
    "image/jpg": "jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/tiff": "tiff",
    "image/webp": "webp",
    "text/css": "css",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "text/plain": "txt",
    "text/tab-separated-values": "tsv",
    "text/xml": "xml",
    "text/yaml": "yaml",
    "video/mp4": "mp4",
    "video/webm": "webm",
}
_BY_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"%PDF-", "pdf"),
    (b"PK\x03\x04", "zip"),
    (b"\x1f\x8b", "gz"),
    (b"OggS", "ogg"),
    (b"fLaC", "flac"),
    (b"ID3", "mp3"),
    (b"\xff\xfb", "mp3"),
    (b"BM", "bmp"),
    (b"SQLite format 3\0", "sqlite"),
    (b"\0asm", "wasm"),
)
_IN_RIFF = {b"WEBP": "webp", b"WAVE": "wav", b"AVI ": "avi"}


class NotKept(Exception):
    """An artifact could not be written; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactInfo:
    """One file of a session's artifacts."""

    path: Path
    size: int  # bytes
    changed: float  # seconds since the epoch


class Artifacts:
    """The folder ``<session>/artifacts``; may be used from several threads.

    Args:
        folder: Made when the first file is.
        most: Bytes all files together may have.
    """

    def __init__(self, folder: Path, *, most: int = MAX_ALL) -> None:
        self.folder = folder
        self._most = most
        self._lock = threading.Lock()
        self._next = 0  # 0: the folder was not looked at yet
        self._used = 0

    def keep(self, data: bytes, *, name: str, mime: str = "") -> Path:
        """Write ``data`` to a new file and give its path; the file is whole or not there.

        Files sort in the order they were kept. ``name`` and ``mime`` may come from a server: of
        the first only harmless characters are used, of the second an extension kage knows.

        Raises:
            NotKept: it is too large, the session's share is used up, or the disk refuses.
        """
        if len(data) > MAX_FILE:
            raise NotKept(f"it has {len(data):,} bytes, the limit is {MAX_FILE:,}")
        try:
            with self._lock:
                self._look()
                if self._used + len(data) > self._most:
                    raise NotKept(f"the files of this session would pass {self._most:,} bytes")
                path = self._write(data, f"{_words(name)}.{extension(mime, data)}")
                self._used += len(data)
                return path
        except OSError as error:
            raise NotKept(error.strerror or str(error)) from error

    def stem(self, name: str) -> str:
        """Reserve the beginning of a file's name that sorts behind what is there."""
        with self._lock:
            with contextlib.suppress(OSError):
                self._look()
            self._next = max(self._next, 1) + 1
            return f"{self._next - 1:05}-{_words(name)}"

    def _look(self) -> None:
        """Find out what earlier kages left."""
        if self._next:
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._tidy()
        held = listing(self.folder)
        numbers = [int(found[1]) for info in held if (found := _NUMBER.match(info.path.name))]
        self._next = max(numbers, default=0) + 1
        self._used = sum(info.size for info in held)

    def _tidy(self) -> None:
        """Remove what a kage that died left half-written; a session has one writer at a time."""
        for draft in self.folder.glob(".*.part"):
            if not draft.name.startswith(f".{os.getpid()}-"):
                with contextlib.suppress(OSError):
                    draft.unlink()

    def _write(self, data: bytes, name: str) -> Path:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self.folder / f".{os.getpid()}-{secrets.token_hex(8)}.part"
        try:
            with os.fdopen(os.open(draft, _CREATE, 0o600), "wb") as file:
                file.write(data)
            while True:
                path = self.folder / f"{self._next:05}-{name}"
                self._next += 1
                if _publish(draft, path):
                    return path
        finally:
            with contextlib.suppress(OSError):
                draft.unlink()


def listing(folder: Path) -> tuple[ArtifactInfo, ...]:
    """Give the files of an artifacts folder in the order they were kept; () when there is none."""
    found: list[ArtifactInfo] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
                    continue
                status = entry.stat(follow_symlinks=False)
                info = ArtifactInfo(
                    path=Path(entry.path), size=status.st_size, changed=status.st_mtime
                )
                found.append(info)
    except OSError:
        pass  # what could be read is told
    return tuple(sorted(found, key=lambda info: info.path.name))


def extension(mime: str, data: bytes) -> str:
    """Choose an extension by the type a server names, else by the first bytes, without a dot."""
    known = _BY_MIME.get(mime.partition(";")[0].strip().lower())
    if known is not None:
        return known
    if data[:4] == b"RIFF":
        return _IN_RIFF.get(data[8:12], "bin")
    for magic, found in _BY_MAGIC:
        if data.startswith(magic):
            return found
    return "txt" if _is_text(data) else "bin"


def _is_text(data: bytes) -> bool:
    head = data[:8192]
    if b"\0" in head:
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return len(data) > len(head) and error.start >= len(head) - 3  # a character cut in two
    return True


def _words(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-")[:_STEM] or "file"


def _publish(draft: Path, path: Path) -> bool:
    """Give ``draft`` its name; False when something has it already."""
    try:
        os.link(draft, path, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            return False
        draft.rename(path)
    return True
