"""kage's tools as MCP tools: which are offered, how they are described, what a result becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kage.core.content import Audio, Content, Image, Resource, ResourceLink, Text, as_text
from kage.core.errors import UsageError
from kage.core.messages import Outcome
from kage.core.sanitise import clip, visible
from kage.core.tools import Risk, Tool, ToolResult, ToolSpec
from kage.mcp.server.revisions import MODERN
from kage.mcp.server.rpc import encode
from kage.mcp.server.validate import Validator, compile_schema

_HINTS: Mapping[Risk, Mapping[str, bool]] = {
    Risk.READ: {"readOnlyHint": True, "openWorldHint": False},
    Risk.WRITE: {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": False},
    Risk.EXEC: {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
    Risk.NETWORK: {"readOnlyHint": True, "openWorldHint": True},
}


class Offer(NamedTuple):
    """One tool on offer."""

    tool: Tool
    spec: ToolSpec
    validate: Validator
    definition: Mapping[str, Any]  # as the newest revision has it; JSON


def offers(tools: Sequence[Tool]) -> dict[str, Offer]:
    """Prepare ``tools`` by name, in the order given."""
    return {tool.spec.name: _offer(tool) for tool in tools}


def _offer(tool: Tool) -> Offer:
    spec = tool.spec
    definition: dict[str, Any] = {"name": spec.name}
    if spec.title:
        definition["title"] = spec.title
    definition["description"] = spec.description
    definition["inputSchema"] = dict(spec.schema)
    hints: dict[str, Any] = dict(_HINTS[spec.risk])
    if spec.title:
        hints = {"title": spec.title, **hints}
    definition["annotations"] = hints
    return Offer(tool=tool, spec=spec, validate=compile_schema(spec.schema), definition=definition)


def check_root(root: Path, *, named: bool, home: Path) -> Path:
    """Give the real folder to serve; the whole disk or home must be asked for.

    Args:
        root: The folder.
        named: Whether ``--root`` named it.
        home: The person's home folder.

    Raises:
        UsageError: it is no folder, or is too much to serve without being named.
    """
    try:
        real = root.resolve()
        sound = real.is_dir()
    except (OSError, RuntimeError):  # Python 3.11 tells of a loop of links in the second way
        sound = False
    if not sound:
        shown = clip(visible(str(root), single_line=True), 200)
        raise UsageError(f"{shown} is no folder", fix="Name one with --root")
    if not named and real in (Path(real.anchor), home.resolve(), *home.resolve().parents):
        raise UsageError(
            f"{real} would give the calling program everything in it",
            fix=f"Start in a project folder, or write --root {real} if you mean it",
        )
    return real


def result_body(result: ToolResult, revision: str, stamp: bytes) -> bytes:
    """Encode a tool's result for ``revision``; ``stamp`` ends every body of the modern era."""
    parts = b",".join(encode(_block(part, revision)) for part in result.content)
    extra = b""
    value = result.structured  # before 2026-07-28 an object, before 2025-06-18 nothing
    if value is not None and revision >= ("2025-06-18" if isinstance(value, dict) else MODERN):
        extra = b',"structuredContent":' + encode(value)
    failed = b"false" if result.outcome is Outcome.OK else b"true"
    return b'{"content":[%b]%b,"isError":%b%b}' % (parts, extra, failed, stamp)


def failure_body(text: str, stamp: bytes) -> bytes:
    """Encode a failed result that says ``text``."""
    block = encode({"type": "text", "text": text})
    return b'{"content":[%b],"isError":true%b}' % (block, stamp)


def _block(part: Content, revision: str) -> Mapping[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image():
            return {"type": "image", "data": part.data, "mimeType": part.mime}
        case Audio() if revision >= "2025-03-26":
            return {"type": "audio", "data": part.data, "mimeType": part.mime}
        case Resource():
            held = {"blob": part.blob} if part.text is None else {"text": part.text}
            mime = {"mimeType": part.mime} if part.mime else {}
            return {"type": "resource", "resource": {"uri": part.uri, **mime, **held}}
        case ResourceLink() if revision >= "2025-06-18":
            link = {"type": "resource_link", "uri": part.uri, "name": part.name or part.uri}
            return link | ({"mimeType": part.mime} if part.mime else {})
        case _:
            return {"type": "text", "text": as_text([part])}
