"""What each server offered last time, on disk, so that its tools are known without its process.

One file per server identity (name and origin), good only for the entry hash it was made with. It
is a cache: a file that is broken, too large or of another shape counts as none, and is replaced
by the next one. Pins are digested anew from what it holds. The format's number is in the file's
name, so versions of kage do not meet.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kage.core.files import reading, replace, stem
from kage.mcp.client.calling.definitions import Listing, parse

MAX_BYTES = 64 << 20  # of one file
_FORMAT = "v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What one server offered; everything in it is redacted already."""

    server: str
    origin: str
    entry: str  # entry hash
    listing: Listing
    instructions: str = ""
    protocol: str = ""  # the revision spoken
    version: str = ""  # the server's name and version, as it says
    offers: Mapping[str, Any] = field(default_factory=dict)  # raw: capabilities, prompts, ...


class Manifests:
    """The folder of manifests; None keeps them in memory, for this process only."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._held: dict[tuple[str, str], Manifest] = {}
        self._alone = threading.Lock()  # many servers come up at once; descriptors are few

    def load(self, server: str, origin: str, entry: str) -> Manifest | None:
        """Give what the server offered when ``entry`` was last started; None when not known."""
        if self._folder is None:
            held = self._held.get((server, origin))
        else:
            held = _read(self._folder / _file_name(server, origin))
        if held is None or (held.server, held.origin, held.entry) != (server, origin, entry):
            return None
        return held

    def save(self, manifest: Manifest) -> str:
        """Keep ``manifest`` in place of the one before; gives why it could not be, else ""."""
        if self._folder is None:
            self._held[manifest.server, manifest.origin] = manifest
            return ""
        try:
            text = json.dumps(_plain(manifest), ensure_ascii=True, allow_nan=False)
        except (ValueError, TypeError, RecursionError) as error:
            return f"what it offers cannot be written down: {error}"
        if len(text) > MAX_BYTES:
            return f"what it offers is larger than {MAX_BYTES >> 20} MiB"
        try:
            with self._alone:
                _write(self._folder / _file_name(manifest.server, manifest.origin), text.encode())
        except OSError as error:
            return f"{self._folder}: {error.strerror or error}"
        return ""

    def forget(self, server: str, origin: str) -> None:
        """Drop what is kept of a server."""
        self._held.pop((server, origin), None)
        if self._folder is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._folder / _file_name(server, origin))


def _file_name(server: str, origin: str) -> str:
    return f"{stem(server, origin)}.{_FORMAT}.json"


def _write(path: Path, data: bytes) -> None:
    with contextlib.suppress(OSError), reading(path, follow=False) as stream:
        if stream.read() == data:  # the rule, at every start
            return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace(path, data)


def _read(path: Path) -> Manifest | None:
    try:
        with reading(path, follow=False) as stream:
            raw = stream.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            return None
        return _parse(json.loads(raw))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # none, half a file, or not what kage wrote


def _plain(manifest: Manifest) -> dict[str, Any]:
    return {
        "server": manifest.server,
        "origin": manifest.origin,
        "entry": manifest.entry,
        "instructions": manifest.instructions,
        "protocol": manifest.protocol,
        "version": manifest.version,
        "offers": dict(manifest.offers),
        "dropped": list(manifest.listing.dropped),
        "tools": [tool.written for tool in manifest.listing.tools],
    }


def _parse(data: Any) -> Manifest:  # what JSON can hold
    """Read a manifest back; anything that is not exactly its shape raises."""
    return Manifest(
        server=_text(data["server"]),
        origin=_text(data["origin"]),
        entry=_text(data["entry"]),
        instructions=_text(data["instructions"]),
        protocol=_text(data["protocol"]),
        version=_text(data["version"]),
        offers=_offers(data["offers"]),
        listing=Listing(
            tools=tuple(parse(entry) for entry in data["tools"]),
            dropped=tuple(_text(reason) for reason in data["dropped"]),
        ),
    )


def _offers(data: Any) -> Mapping[str, Any]:
    offers = dict(_mapping(data))
    _mapping(offers.get("capabilities", {}))
    for name in ("prompts", "resources", "templates"):
        entries = offers.get(name, [])
        if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
            raise ValueError(f"{name} are no list of objects")
    return offers


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("this is no text")
    return value


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("this is no object")
    return value
