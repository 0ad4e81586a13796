"""Arguments a server wants to see as headers too: ``x-mcp-header`` in its tools' schemas.

A tool that marks an argument in a way the specification forbids may not be called over HTTP
(2026-07-28). Imports the SDK: import it late.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mcp.shared.inbound import (
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types.jsonrpc import JSONRPCRequest

from kage.core.sanitise import clip, visible
from kage.mcp.client.calling.definitions import Listing

Marks = Mapping[tuple[str, ...], str]  # path of an argument: its header


class ParamHeaders:
    """What the tools of one server mark."""

    def __init__(self) -> None:
        self._marks: dict[str, Marks] = {}

    def sift(self, listing: Listing) -> Listing:
        """Take note of what ``listing`` marks; give it without the tools that may not be called."""
        marks: dict[str, Marks] = {}
        refused: list[str] = []
        kept = []
        for tool in listing.tools:
            wrong = find_invalid_x_mcp_header(tool.schema)
            if wrong is not None:
                label = clip(visible(tool.name, single_line=True), 80)
                refused.append(f"{label}: {clip(visible(wrong, single_line=True), 300)}")
                continue
            kept.append(tool)
            if found := x_mcp_header_map(tool.schema):
                marks[tool.name] = found
        self._marks = marks
        if not refused:
            return listing
        return replace(listing, tools=tuple(kept), dropped=(*listing.dropped, *refused))

    def marked(self, item: SessionMessage) -> SessionMessage:
        """Give a message with the headers its arguments ask for."""
        message = item.message
        if not isinstance(message, JSONRPCRequest) or message.method != "tools/call":
            return item
        params = message.params or {}
        arguments, marks = params.get("arguments"), self._marks.get(str(params.get("name")))
        if not marks or not isinstance(arguments, Mapping):
            return item
        old = item.metadata if isinstance(item.metadata, ClientMessageMetadata) else None
        old = old or ClientMessageMetadata()
        headers = {**(old.headers or {}), **mcp_param_headers(marks, arguments)}
        return SessionMessage(message, replace(old, headers=headers))
