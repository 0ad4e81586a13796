"""Read the resources a result points at, where the person wants that: same server, bounded."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Protocol, runtime_checkable
from urllib.parse import SplitResult, urlsplit

from kage.config.schema import ServerSpec
from kage.core.content import NOTE, Audio, Content, Image, Resource, ResourceLink, Text
from kage.core.errors import KageError
from kage.core.sanitise import clip
from kage.core.tools import ToolResult

MAX_LINKS = 10  # of one result
MAX_SIZE = 8 << 20  # characters of all that one result's links give
TIME = 30.0  # seconds for all links of one result
_PORTS = {"http": 80, "https": 443}


@runtime_checkable
class Reads(Protocol):
    """A connection that can read resources of its server."""

    async def read_resource(self, uri: str) -> tuple[Content, ...]:
        """Read one.

        Raises:
            ServerError: it could not be had.
        """
        ...


async def follow(result: ToolResult, spec: ServerSpec, reader: Reads) -> ToolResult:
    """Put what each link of ``result`` points at behind the link; what is not read says why.

    The server that gave the link is asked, as part of the call the person approved; kage itself
    opens no address. A link to another host stays a link.
    """
    content: list[Content] = []
    links, room = 0, MAX_SIZE
    end = asyncio.get_running_loop().time() + TIME
    for part in result.content:
        content.append(part)
        if not isinstance(part, ResourceLink) or room <= 0:
            continue
        links += 1
        if links > MAX_LINKS:
            if links == MAX_LINKS + 1:
                content.append(Text(f"{NOTE}only the first {MAX_LINKS} links were read]", own=True))
            continue
        found = await _read(part, spec, reader, end)
        room -= sum(map(_size, found))
        if room < 0:
            found = (_note(part, f"all that is linked passes {MAX_SIZE:,} characters"),)
        content += found
    return replace(result, content=tuple(content))


async def _read(
    link: ResourceLink, spec: ServerSpec, reader: Reads, end: float
) -> tuple[Content, ...]:
    if not _own(link.uri, spec):
        return (_note(link, "it is an address outside this server"),)
    try:
        async with asyncio.timeout_at(end):
            return await reader.read_resource(link.uri)
    except TimeoutError:
        return (_note(link, f"the links of a result have {TIME:g} s in all"),)
    except KageError as error:
        return (_note(link, clip(error.why or error.what, 300)),)


def _own(uri: str, spec: ServerSpec) -> bool:
    """Say whether ``uri`` can be a thing of this server; web addresses only of its own origin."""
    try:
        asked = urlsplit(uri.strip())
        if not asked.scheme or asked.scheme.lower() not in _PORTS:
            return bool(asked.scheme)
        return bool(spec.url) and _origin(asked) == _origin(urlsplit(spec.url))
    except ValueError:
        return False


def _origin(url: SplitResult) -> tuple[str, str, int | None]:
    scheme = url.scheme.lower()
    return scheme, (url.hostname or "").rstrip("."), url.port or _PORTS.get(scheme)


def _size(part: Content) -> int:
    match part:
        case Text(text):
            return len(text)
        case Image(data=data) | Audio(data=data):
            return len(data)
        case Resource():
            return len(part.text or part.blob or "")
        case _:
            return 0


def _note(link: ResourceLink, why: str) -> Text:
    return Text(f"{NOTE}{clip(link.uri, 200)} was not read: {why}]", own=True)
