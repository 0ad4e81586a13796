"""What each server offered last time, on disk, so that its tools are known without its process.

One file per server identity (name and origin), good only for the entry hash it was made with. It
is a cache: a file that is broken, too large or of another shape counts as none, and is replaced
by the next one. The format's number is in the file's name, so versions of kage do not meet.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kage.core.files import replace
from kage.core.tools import Claims
from kage.mcp.client.calling.definitions import Definition, Listing

MAX_BYTES = 64 << 20  # of one file
_FORMAT = "v1"
_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
_CLAIMS = tuple(item.name for item in dataclasses.fields(Claims))


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
    plain = "".join(letter if letter in _PLAIN else "_" for letter in server)[:40].lstrip(".")
    digest = hashlib.sha256(f"{server}\0{origin}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{plain or 'server'}-{digest[:24]}.{_FORMAT}.json"


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace(path, data)


def _read(path: Path) -> Manifest | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
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
        "tools": [
            {
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "schema": tool.schema,
                "output_schema": tool.output_schema,
                "claims": {name: getattr(tool.claims, name) for name in _CLAIMS},
                "pin": tool.pin,
            }
            for tool in manifest.listing.tools
        ],
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
            tools=tuple(_tool(entry) for entry in data["tools"]),
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


def _tool(data: Any) -> Definition:
    claims = _mapping(data["claims"])
    said = {name: claims.get(name) for name in _CLAIMS}
    if not all(value is None or isinstance(value, bool) for value in said.values()):
        raise ValueError("a claim is neither yes nor no")
    output = data["output_schema"]
    return Definition(
        name=_text(data["name"]),
        title=_text(data["title"]),
        description=_text(data["description"]),
        schema=_mapping(data["schema"]),
        output_schema=None if output is None else _mapping(output),
        claims=Claims(**said),
        pin=_text(data["pin"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("this is no text")
    return value


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("this is no object")
    return value
