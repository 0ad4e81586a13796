"""Make a tool's result of a fetched page."""

from __future__ import annotations

import asyncio
import base64
from http import HTTPStatus

from kage.core.content import Content, Image, Text
from kage.core.errors import ToolError
from kage.core.messages import Outcome
from kage.core.processes import Spawner
from kage.core.tools import Invocation, ToolResult
from kage.tools import arguments, charset, net, page, workers
from kage.tools.encoding import IMAGES, media_type, size, sniff
from kage.tools.limits import FETCH_DEFAULT
from kage.tools.net import Fetched, Resolver
from kage.tools.read import MAX_IMAGE

CONVERSION = 10.0  # seconds for HTML to Markdown, the start of the helper included
_HTML = ("text/html", "application/xhtml+xml")
_TEXT_ENDINGS = ("json", "xml", "javascript", "yaml", "toml", "x-ndjson", "graphql", "sql")


async def run(
    call: Invocation,
    *,
    spawner: Spawner,
    limit: int,
    allow_loopback: bool,
    resolver: Resolver | None,
) -> ToolResult:
    """Fetch the page; at most ``limit`` characters of it are given at once.

    Raises:
        ToolError: the address is not public, not http(s), or could not be fetched.
    """
    url = arguments.text(call.arguments, "url")
    raw = arguments.flag(call.arguments, "raw")
    start = arguments.number(call.arguments, "start_index", 0, low=0, high=1 << 53)
    most = arguments.number(
        call.arguments, "max_length", min(FETCH_DEFAULT, limit), low=100, high=limit
    )
    got = await net.fetch(url, resolver=resolver or net.resolve, allow_loopback=allow_loopback)
    kind = _kind(got)
    failed = got.status >= HTTPStatus.BAD_REQUEST
    if kind in IMAGES and not failed:
        return _image(got, kind)
    text = await _text(spawner, got, kind, raw=raw)
    return _part(got, kind, text, start, most, failed=failed)


async def _text(spawner: Spawner, got: Fetched, kind: str, *, raw: bool) -> str:
    html = kind in _HTML
    if not html and not _is_text(kind) and sniff(got.body[:8192]) is None:
        if got.status >= HTTPStatus.BAD_REQUEST:
            return ""  # the status says enough
        raise ToolError(
            f"{got.url} is {kind or 'of an unknown type'}, {size(len(got.body))}",
            why="only text, HTML and images can be shown",
        )
    text = charset.decode(got.body, got.content_type, html=html)
    if not html or raw:
        return text.replace("\0", "\ufffd")
    try:
        answer, _ = await workers.run(
            spawner,
            "kage.tools.page",
            page.request(text, got.url),
            timeout=CONVERSION,
            most=4 * net.MAX_BODY,
            libraries=True,
        )
    except (TimeoutError, ToolError):  # the page was too much for it: the text is left
        return await asyncio.to_thread(page.to_text, text)
    return answer.decode("utf-8", "replace").replace("\0", "\ufffd")


def _kind(got: Fetched) -> str:
    """Give the media type: what the bytes say for images, else the header, else a guess."""
    said = got.content_type.partition(";")[0].strip().lower()
    seen = media_type(got.body[:16])
    if seen in IMAGES:
        return seen
    if said in ("", "application/octet-stream", "text/plain", "unknown/unknown"):
        head = got.body[:200].lstrip().lower()
        if said == "" and head.startswith((b"<!doctype html", b"<html")):
            return "text/html"
    return said or seen


def _is_text(kind: str) -> bool:
    return kind.startswith("text/") or kind.endswith(_TEXT_ENDINGS)


def _image(got: Fetched, kind: str) -> ToolResult:
    if got.cut or len(got.body) > MAX_IMAGE:
        raise ToolError(
            f"{got.url} is an image of more than {size(MAX_IMAGE)}, too large to be shown"
        )
    note = f"{got.url}: {kind}, {size(len(got.body))}"
    parts: tuple[Content, ...] = (
        Text(note),
        Image(data=base64.b64encode(got.body).decode(), mime=kind),
    )
    return ToolResult(content=parts, summary=f"{kind}, {size(len(got.body))}")


def _part(got: Fetched, kind: str, text: str, start: int, most: int, *, failed: bool) -> ToolResult:
    total = len(text)
    if start and start >= total:
        raise ToolError(f"The page has only {total:,} characters")
    notes: list[str] = []
    end = min(start + most, total)
    if start or end < total:
        more = f"; go on with start_index={end}" if end < total else ""
        notes.append(f"[Characters {start:,} to {end:,} of {total:,}{more}]")
    if got.cut:
        notes.append(f"[The page is longer than {size(net.MAX_BODY)}; the rest was not read]")
    status = f"HTTP {got.status}"
    head = f"{got.url[:600]} ({status}, {kind or 'no type'}, {size(len(got.body))})"
    shown = text[start:end] or "(no content)"
    return ToolResult(
        content=(Text("\n".join([head, "", shown, *notes])),),
        outcome=Outcome.TOOL_ERROR if failed else Outcome.OK,
        summary=status if failed else f"{status}, {size(len(got.body))}",
    )
