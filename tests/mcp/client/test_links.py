"""Links of a result: followed only inside their server, bounded, and never at the result's cost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kage.config.schema import ServerSpec
from kage.core.content import NOTE, Content, Resource, ResourceLink, Text, as_text
from kage.core.errors import ServerError
from kage.core.tools import ToolResult
from kage.mcp.client.calling.links import MAX_LINKS, MAX_SIZE, follow
from kage.mcp.client.calling.results import tool_result

STDIO = ServerSpec(name="srv", command="x", fetch_resource_links=True)
HTTP = ServerSpec(name="srv", url="https://Example.invalid:443/mcp", fetch_resource_links=True)


class Shelf:
    """A server's resources; an address with "bad" in it cannot be read."""

    def __init__(self, text: str = "inside") -> None:
        self.text = text
        self.asked: list[str] = []

    async def read_resource(self, uri: str) -> tuple[Content, ...]:
        self.asked.append(uri)
        if "bad" in uri:
            raise ServerError(f"{uri} cannot be read", server="srv", stage="call", why="not found")
        return (Resource(uri=uri, text=self.text),)


def followed(spec: ServerSpec, *uris: str, shelf: Shelf) -> tuple[Content, ...]:
    links = tuple(ResourceLink(uri=uri) for uri in uris)
    result = ToolResult(content=(Text("first"), *links, Text("last")), structured={"a": 1})
    found = asyncio.run(follow(result, spec, shelf))
    assert (found.content[0], found.content[-1]) == (Text("first"), Text("last"))
    assert found.structured == {"a": 1}
    assert [part.uri for part in found.content if isinstance(part, ResourceLink)] == list(uris)
    return found.content


@pytest.mark.parametrize(
    ("spec", "uri", "own"),
    [
        (STDIO, "note://x", True),
        (STDIO, "file:///etc/passwd", True),  # the server's own word for something of its own
        (STDIO, "https://example.invalid/x", False),
        (STDIO, "HTTP://127.0.0.1/", False),
        (STDIO, " https://example.invalid/x", False),
        (STDIO, "no address", False),
        (STDIO, "http://[broken", False),
        (HTTP, "https://example.invalid/other", True),
        (HTTP, "https://example.invalid.:443/x", True),
        (HTTP, "http://example.invalid/x", False),
        (HTTP, "https://example.invalid:8443/x", False),
        (HTTP, "https://user@evil.invalid/example.invalid", False),
        (HTTP, "https://example.invalid@evil.invalid/", False),
        (HTTP, "https://example.invalid:99999/", False),
    ],
)
def test_web_addresses_are_read_only_of_the_servers_own_origin(
    spec: ServerSpec, uri: str, own: bool
) -> None:
    shelf = Shelf()
    content = followed(spec, uri, shelf=shelf)
    assert shelf.asked == ([uri] if own else [])
    assert ("outside this server" in as_text(content)) is not own


def test_what_is_read_stands_behind_its_link_and_a_failure_costs_only_itself() -> None:
    content = followed(STDIO, "note://bad", "note://good", shelf=Shelf())
    assert content[2] == Text(f"{NOTE}note://bad was not read: not found]", own=True)
    assert content[4] == Resource(uri="note://good", text="inside")


def test_the_number_and_the_size_of_links_are_bounded() -> None:
    shelf = Shelf()
    content = followed(STDIO, *(f"note://{n}" for n in range(50)), shelf=shelf)
    assert len(shelf.asked) == MAX_LINKS
    assert as_text(content).count("only the first") == 1
    large = Shelf("x" * (MAX_SIZE // 2 + 1))
    content = followed(STDIO, *(f"note://{n}" for n in range(5)), shelf=large)
    assert large.asked == ["note://0", "note://1"]
    assert len(as_text(content)) < MAX_SIZE and "passes" in as_text(content)


def test_a_deeply_nested_structured_result_is_no_mistake_of_the_call() -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    result = tool_result({"structuredContent": deep}, server="s", tool="t", output_schema=None)
    assert "nested too deep" in as_text(result.content)


def test_base64_in_lines_is_joined() -> None:
    raw = {"content": [{"type": "image", "data": "QUJD\r\nREVG\n", "mimeType": "image/png"}]}
    result = tool_result(raw, server="s", tool="t", output_schema=None)
    assert getattr(result.content[0], "data", "") == "QUJDREVG"
