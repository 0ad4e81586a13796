"""Turn the raw result of ``tools/call`` into typed content, part by part, never failing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kage.core.content import NOTE, Audio, Content, Image, Resource, ResourceLink, Text
from kage.core.messages import Outcome
from kage.core.sanitise import clip
from kage.core.tools import ToolResult
from kage.mcp.client.calling.shape import misfit

_MAX_MIME = 200  # characters
_MAX_URI = 2_000  # characters, of what is not cut with the text


def tool_result(
    raw: Mapping[str, Any], *, server: str, tool: str, output_schema: Mapping[str, Any] | None
) -> ToolResult:
    """Read a ``CallToolResult`` of any revision.

    Content of an unknown or broken kind is named in its place. A structured result that breaks
    the schema its tool promised stays and is followed by a warning.
    """
    kind = raw.get("resultType", "complete")
    if kind == "input_required":
        return ToolResult.error(
            f"The tool {tool!r} of server {server!r} asked for input kage cannot give, so it did "
            "not finish. Give everything it needs as arguments, or use another tool."
        )
    if kind != "complete":
        return ToolResult.error(
            f"The tool {tool!r} of server {server!r} answered with a result of kind "
            f"{clip(str(kind), 60)!r}, which kage does not know."
        )
    parts, complaint = _content(raw, server)
    structured = raw.get("structuredContent")
    is_error = raw.get("isError") not in (None, False, 0, "", "false")  # in doubt it failed
    if not parts and structured is not None:
        parts = [Text(_pretty(structured))]
    elif complaint:
        return ToolResult.error(
            f"The tool {tool!r} of server {server!r} answered with {complaint}. It may have done "
            "its work all the same."
        )
    if output_schema is not None and not is_error and (wrong := _breaks(output_schema, raw)):
        parts.append(
            Text(
                f"{NOTE}the structured result breaks what {tool!r} promised: {clip(wrong, 300)}]",
                own=True,
            )
        )
    return ToolResult(
        content=tuple(parts),
        outcome=Outcome.TOOL_ERROR if is_error else Outcome.OK,
        structured=structured,
    )


def _pretty(structured: object) -> str:
    try:
        return json.dumps(structured, ensure_ascii=False, indent=2)
    except (RecursionError, ValueError):
        return "[the structured result is nested too deep to be shown]"


def _breaks(schema: Mapping[str, Any], raw: Mapping[str, Any]) -> str:
    if "structuredContent" not in raw:
        return "there is none"
    return misfit(schema, raw["structuredContent"])


def _content(raw: Mapping[str, Any], server: str) -> tuple[list[Content], str]:
    entries = raw.get("content")
    if entries is None and "structuredContent" not in raw:
        return [], "no content"
    if entries is None:
        return [], ""
    if not isinstance(entries, list):
        return [], "content that is no list"
    return [part(entry, server) for entry in entries], ""


def part(entry: object, server: str) -> Content:
    """Read one part of content; one that cannot be read is named in its place."""
    if not isinstance(entry, Mapping):
        return Text(f"[server {server} sent a part of its result kage cannot read]")
    match entry:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "image", "data": str(data)}:
            return Image(data=_base64(data), mime=_mime(entry))
        case {"type": "audio", "data": str(data)}:
            return Audio(data=_base64(data), mime=_mime(entry))
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)} as held}:
            return Resource(uri=uri, mime=_mime(held), text=text)
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str(blob)} as held}:
            return Resource(uri=clip(uri, _MAX_URI), mime=_mime(held), blob=_base64(blob))
        case {"type": "resource_link", "uri": str(uri)}:
            return ResourceLink(
                uri=uri,
                name=_text(entry, "name"),
                mime=_mime(entry),
                description=_text(entry, "description"),
            )
        case {"type": str(kind)}:
            return Text(
                f"[server {server} sent a part of kind {clip(kind, 60)!r} kage cannot read]"
            )
    return Text(f"[server {server} sent a part of its result kage cannot read]")


def _text(entry: Mapping[Any, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _base64(data: str) -> str:
    """Join base64 that came in lines, which strict readers refuse."""
    return "".join(data.split()) if "\n" in data or "\r" in data else data


def _mime(entry: Mapping[Any, Any]) -> str:
    return clip(_text(entry, "mimeType"), _MAX_MIME)
