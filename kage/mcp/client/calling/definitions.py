"""What a server says its tools are: raw ``tools/list`` entries judged one by one, and digests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kage.config.schema import OAuthSpec, ServerSpec
from kage.core.canonical import NotCanonical, canonical
from kage.core.definitions import canonical_form, written
from kage.core.sanitise import clip, visible
from kage.core.tools import Claims
from kage.mcp.client.wire.wash import MAX_DEPTH, PROSE, TooDeep, wash

MAX_NAME = 512  # characters of a tool's name on the wire
MAX_SCHEMA = 256 << 10  # bytes of one tool's schemas and texts in canonical form


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One sound tool; ``pin`` digests what the server wrote of it, before any repair."""

    name: str  # as on the wire
    title: str
    description: str
    schema: Mapping[str, Any]  # JSON Schema, its root is an object
    output_schema: Mapping[str, Any] | None
    claims: Claims
    pin: str
    written: Mapping[str, Any]  # what the server wrote of it, secrets out of its texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Everything a server offered: sound tools, and what was left out with the reason."""

    tools: tuple[Definition, ...] = ()
    dropped: tuple[str, ...] = ()


class Unsound(ValueError):
    """An entry cannot become a tool; the text says why."""


def judge(entries: Sequence[object], redact: Callable[[str], str] = str) -> Listing:
    """Parse ``tools`` of a ``tools/list`` result entry by entry; a bad one costs only itself.

    Of two entries with one name the first stays, since a call could not tell them apart.
    ``redact`` takes secrets out of what is written for people.
    """
    sound: dict[str, Definition] = {}
    dropped: list[str] = []
    for index, entry in enumerate(entries):
        try:
            definition = parse(_washed(entry, redact))
            if definition.name in sound:
                raise Unsound("the name is listed twice")
        except Unsound as error:
            why = clip(visible(str(error), single_line=True), 300)
            dropped.append(f"{_label(entry, index)}: {why}")
        else:
            sound[definition.name] = definition
    return Listing(tools=tuple(sound.values()), dropped=tuple(dropped))


def wanted(tools: Iterable[Definition], spec: ServerSpec) -> tuple[Definition, ...]:
    """Keep the tools ``enabled_tools`` and ``disabled_tools`` leave in, ``max_tools`` at most."""
    kept = tuple(
        tool
        for tool in tools
        if _matches(tool.name, spec.enabled_tools) and not _matches(tool.name, spec.disabled_tools)
    )
    return kept[: spec.max_tools] if spec.max_tools else kept


def left_out(listing: Listing, spec: ServerSpec) -> tuple[str, ...]:
    """Give why tools are not offered that the person's globs did not ask to leave out."""
    unlimited = replace(spec, max_tools=0)
    over = len(wanted(listing.tools, unlimited)) - spec.max_tools if spec.max_tools else 0
    if over <= 0:
        return listing.dropped
    note = f"the last {over} tools: max_tools allows {spec.max_tools}"
    return (*listing.dropped, note)


def entry_hash(spec: ServerSpec, argv: Sequence[str], executable: str, cwd: Path) -> str:
    """Digest what would start or connect (DESIGN section 3); secrets enter unexpanded.

    Args:
        argv: Command and arguments, expanded.
        executable: The resolved path of the command; "" when it was not found.
        cwd: Where it would run.
    """
    entry = {
        "transport": spec.transport,
        "argv": list(argv),
        "executable": executable,
        "cwd": str(cwd),
        "url": spec.url,
        "env": dict(spec.env),
        "env_pass": sorted(spec.env_pass),
        "headers": dict(spec.headers),
    }
    if spec.auth != "auto" or spec.oauth != OAuthSpec():
        entry["auth"] = spec.auth
        oauth = asdict(spec.oauth) | {"scopes": list(spec.oauth.scopes)}
        command = list(oauth.pop("idp_id_token_command"))
        entry["oauth"] = oauth | ({"idp_id_token_command": command} if command else {})
    if spec.sandbox != "none":
        entry["sandbox"] = [spec.sandbox, *spec.sandbox_write]
    if spec.headers_command:
        entry["headers_command"] = list(spec.headers_command)
    try:
        return hashlib.sha256(canonical(entry)).hexdigest()
    except NotCanonical:  # a path or argument that is no Unicode: its bytes are as good
        return hashlib.sha256(repr(entry).encode("utf-8", "surrogatepass")).hexdigest()


def _washed(entry: object, redact: Callable[[str], str]) -> object:
    if not isinstance(entry, Mapping):
        return entry
    try:
        return wash(entry, redact, only=PROSE)
    except TooDeep:
        raise Unsound(f"its definition is nested deeper than {MAX_DEPTH}") from None


def parse(entry: object) -> Definition:
    """Make a definition of a washed entry.

    Raises:
        Unsound: it cannot become a tool.
    """
    if not isinstance(entry, Mapping):
        raise Unsound(f"the entry is a {_kind(entry)}, not an object")
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        raise Unsound("it has no name")
    if len(name) > MAX_NAME:
        raise Unsound(f"its name has {len(name)} characters, the limit is {MAX_NAME}")
    try:
        said = written(entry)
        pinned = canonical_form(said)
    except NotCanonical as error:
        text = str(error).replace("arguments", "the definition", 1)
        raise Unsound(text) from None
    if len(pinned) > MAX_SCHEMA:
        raise Unsound(f"its definition has {len(pinned)} bytes, the limit is {MAX_SCHEMA}")
    annotations = entry.get("annotations")
    claimed: Mapping[str, Any] = annotations if isinstance(annotations, Mapping) else {}
    output = entry.get("outputSchema")
    return Definition(
        name=name,
        title=_text(entry.get("title")) or _text(claimed.get("title")),
        description=_text(entry.get("description")),
        schema=_schema(entry.get("inputSchema")),
        output_schema=output if isinstance(output, Mapping) else None,
        claims=_claims(claimed),
        pin=hashlib.sha256(pinned).hexdigest(),
        written=said,
    )


def _schema(raw: object) -> Mapping[str, Any]:
    """Give the schema of the arguments; a root that merely forgets ``type`` is repaired."""
    if raw is None:
        raise Unsound("it has no inputSchema")
    if not isinstance(raw, Mapping):
        raise Unsound(f"its inputSchema is a {_kind(raw)}, not an object")
    kind = raw.get("type")
    if kind is None or (isinstance(kind, list) and "object" in kind):
        raw = {**raw, "type": "object"}
    elif kind != "object":
        raise Unsound(f"its inputSchema takes {clip(str(kind), 40)!r}, not an object")
    for key in ("properties", "$defs", "definitions"):
        if key in raw and not isinstance(raw[key], Mapping):
            raise Unsound(f"its inputSchema has {key} that are a {_kind(raw[key])}")
    required = raw.get("required")
    if required is not None and not (
        isinstance(required, list) and all(isinstance(item, str) for item in required)
    ):
        raise Unsound("its inputSchema has a required that is no list of names")
    return raw


def _claims(raw: Mapping[str, Any]) -> Claims:
    def hint(key: str) -> bool | None:
        value = raw.get(key)
        return value if isinstance(value, bool) else None

    return Claims(
        read_only=hint("readOnlyHint"),
        destructive=hint("destructiveHint"),
        idempotent=hint("idempotentHint"),
        open_world=hint("openWorldHint"),
    )


def _label(entry: object, index: int) -> str:
    name = entry.get("name") if isinstance(entry, Mapping) else None
    if isinstance(name, str) and name.strip():
        return clip(visible(name, single_line=True), 80)
    return f"tool number {index + 1}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "list"
    return "object"


def _matches(name: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
