"""Fetching: only public addresses, bounded in every direction, honest about the rest."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from kage.core.content import Image
from kage.core.errors import ToolError
from kage.core.messages import Outcome
from kage.core.tools import ToolResult
from kage.tools import net, programs
from kage.tools.web_fetch import WebFetch
from tests.tools.helpers import Bench, text_of
from tests.tools.test_read import PNG

Handler = Callable[[str, dict[str, str], asyncio.StreamWriter], Awaitable[None]]


def answer(body: bytes, *headers: str, status: str = "200 OK") -> Handler:
    """Answer every request the same."""

    async def handle(target: str, asked: dict[str, str], writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
        writer.write("\r\n".join(lines).encode() + body)

    return handle


class Site:
    """A web server on loopback that does what a test tells it to."""

    def __init__(self, handle: Handler) -> None:
        self._handle = handle
        self.requests: list[tuple[str, dict[str, str]]] = []

    async def __aenter__(self) -> Site:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._tasks: set[asyncio.Task[Any]] = set()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            pairs = (line.partition(": ") for line in head[1:] if line)
            asked = {name.lower(): value for name, _, value in pairs}
            target = head[0].split()[1]
            self.requests.append((target, asked))
            await self._handle(target, asked, writer)
            await writer.drain()
        except (ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def fetch(
    bench: Bench, handle: Handler, path: str = "/", **arguments: Any
) -> tuple[ToolResult, Site]:
    async def main() -> tuple[ToolResult, Site]:
        async with Site(handle) as site:
            return await bench.go("web_fetch", url=site.url + path, **arguments), site

    return asyncio.run(main())


def refused(bench: Bench, handle: Handler, path: str = "/", **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        fetch(bench, handle, path, **arguments)
    return str(caught.value)


HTML = b"""<!doctype html><html><head><title>The page</title><style>p{}</style></head><body>
<script>alert(1)</script><h1>Hello</h1><p>A <a href="/x">link</a> &amp; <b>bold</b>.</p>
<ul><li>one<li>two</ul></body></html>"""


def test_html_becomes_markdown(bench: Bench) -> None:
    result, site = fetch(bench, answer(HTML, "Content-Type: text/html; charset=utf-8"))
    text = text_of(result)
    assert "# Hello" in text
    assert f"[link]({site.url}/x)" in text
    assert "& **bold**" in text
    assert "- one" in text
    assert "alert" not in text
    assert "p{}" not in text
    assert text.startswith(f"{site.url}/ (HTTP 200, text/html")


def test_html_can_be_had_as_it_is(bench: Bench) -> None:
    result, _ = fetch(bench, answer(HTML, "Content-Type: text/html"), raw=True)
    assert "<h1>Hello</h1>" in text_of(result)


def test_no_cookie_and_no_credential_is_sent(bench: Bench) -> None:
    async def handle(target: str, asked: dict[str, str], writer: asyncio.StreamWriter) -> None:
        if target == "/":
            await answer(b"", "Set-Cookie: a=b", "Location: /next", status="302 Found")(
                target, asked, writer
            )
        else:
            await answer(b"done", "Content-Type: text/plain")(target, asked, writer)

    result, site = fetch(bench, handle)
    assert "done" in text_of(result)
    assert [target for target, _ in site.requests] == ["/", "/next"]
    for _, asked in site.requests:
        assert not {"cookie", "authorization", "referer"} & set(asked)
        assert asked["host"] == f"127.0.0.1:{site.port}"


@pytest.mark.parametrize("kind", ["application/json", "text/csv", "application/atom+xml", ""])
def test_text_comes_as_it_is(bench: Bench, kind: str) -> None:
    result, _ = fetch(bench, answer(b'{"a": 1}', f"Content-Type: {kind}"))
    assert '{"a": 1}' in text_of(result)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("grüße".encode("latin-1"), "text/plain; charset=ISO-8859-1"),
        ("grüße".encode("cp1252"), "text/plain"),
        ("grüße".encode("utf-16"), "text/plain"),
        ("grüße".encode(), "text/plain; charset=nonsense"),
        ("grüße".encode(), "text/plain; charset=unicode_escape"),
        ("<meta charset='koi8-r'><p>привет grüße".encode(), "text/html; charset=utf-8"),
    ],
)
def test_character_sets_are_understood(bench: Bench, body: bytes, kind: str) -> None:
    result, _ = fetch(bench, answer(body, f"Content-Type: {kind}"))
    assert "grüße" in text_of(result)


def test_an_image_comes_as_an_image(bench: Bench) -> None:
    result, _ = fetch(bench, answer(PNG, "Content-Type: image/png"))
    assert isinstance(result.content[1], Image)


def test_other_binary_data_is_described(bench: Bench) -> None:
    assert "application/pdf" in refused(
        bench, answer(b"%PDF-1.7\0\0", "Content-Type: application/pdf")
    )


def test_a_failed_status_is_a_failed_result_with_its_text(bench: Bench) -> None:
    result, _ = fetch(
        bench, answer(b"nothing here", "Content-Type: text/plain", status="404 Not Found")
    )
    assert result.outcome is Outcome.TOOL_ERROR
    assert "HTTP 404" in text_of(result)
    assert "nothing here" in text_of(result)


def test_long_text_comes_in_parts(bench: Bench) -> None:
    body = "".join(f"{n:08}" for n in range(10_000))
    handle = answer(body.encode(), "Content-Type: text/plain")
    seen = ""
    start = 0
    while True:
        text = text_of(fetch(bench, handle, start_index=start, max_length=30_000)[0])
        seen += text.split("\n")[2]
        if "go on with start_index=" not in text:
            break
        start = int(text.rpartition("start_index=")[2].rstrip("]"))
    assert seen == body
    assert "has only 80,000" in refused(bench, handle, start_index=80_000)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compression_bomb_stops_at_the_cap(bench: Bench, encoding: str) -> None:
    zeros = b"0" * 200_000_000
    packed = gzip.compress(zeros, 1) if encoding == "gzip" else zlib.compress(zeros, 1)
    del zeros
    result, _ = fetch(
        bench, answer(packed, "Content-Type: text/plain", f"Content-Encoding: {encoding}")
    )
    assert "longer than 5.2 MB" in text_of(result)


def test_bare_deflate_and_gzip_are_decoded(bench: Bench) -> None:
    packer = zlib.compressobj(wbits=-15)
    bare = packer.compress(b"hello there") + packer.flush()
    for encoding, body in (("deflate", bare), ("gzip", gzip.compress(b"hello there"))):
        handle = answer(body, "Content-Type: text/plain", f"Content-Encoding: {encoding}")
        assert "hello there" in text_of(fetch(bench, handle)[0])


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "zstd", "x"])
def test_an_encoding_nobody_asked_for_is_refused(bench: Bench, encoding: str) -> None:
    assert "was not asked for" in refused(bench, answer(b"x", f"Content-Encoding: {encoding}"))


def test_a_broken_compression_is_an_error(bench: Bench) -> None:
    assert "broken" in refused(bench, answer(b"no gzip at all", "Content-Encoding: gzip"))


def test_an_endless_body_stops_at_the_cap(bench: Bench) -> None:
    async def handle(target: str, asked: dict[str, str], writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    result, _ = fetch(bench, handle)
    assert "longer than 5.2 MB" in text_of(result)


@pytest.mark.parametrize("part", ["head", "body", "nothing"])
def test_a_slow_drip_meets_the_deadline(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr(net, "DEADLINE", 0.5)

    async def handle(target: str, asked: dict[str, str], writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + (b"\r\n" if part == "body" else b""))
        while True:
            await asyncio.sleep(0.02)
            if part != "nothing":
                writer.write(b"x" if part == "body" else b"X-A: b\r\n")
                await writer.drain()

    assert "took longer" in refused(bench, handle)


def test_headers_without_end_are_refused(bench: Bench) -> None:
    async def handle(target: str, asked: dict[str, str], writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-Filler: " + b"y" * 60_000 + b"\r\n")
            await writer.drain()

    assert "could not be fetched" in refused(bench, handle)


@pytest.mark.parametrize(
    "raw", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"]
)
def test_a_broken_answer_is_an_error(bench: Bench, raw: bytes) -> None:
    async def handle(target: str, asked: dict[str, str], writer: asyncio.StreamWriter) -> None:
        writer.write(raw)

    assert "could not be fetched" in refused(bench, handle)


def test_redirects_without_end_are_ended(bench: Bench) -> None:
    handle = answer(b"", "Location: /again", status="302 Found")
    assert "redirects more than" in refused(bench, handle)


@pytest.mark.parametrize(
    "location",
    [
        *("http://169.254.169.254/latest", "http://10.0.0.1/", "http://[::ffff:10.0.0.1]/"),
        *("file:///etc/passwd", "http://u:p@127.0.0.1/", "gopher://x/", "http://0.0.0.0/"),
    ],
)
def test_a_redirect_to_a_forbidden_place_is_not_followed(bench: Bench, location: str) -> None:
    said = refused(bench, answer(b"", f"Location: {location}", status="302 Found"))
    assert "public" in said or "fetched" in said


def guarded(bench: Bench, url: str, resolver: net.Resolver | None = None) -> str:
    """Fetch with the guard a real host has; the error it must end in."""
    tool = WebFetch(spawner=programs.Groups(), max_output_chars=10_000, resolver=resolver)
    with pytest.raises(ToolError) as caught:
        asyncio.run(tool.run(bench.call(url=url)))
    return str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/"),
        *("http://0177.0.0.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://0/"),
        *("http://localhost/", "http://localhost./", "http://[::]/", "http://10.0.0.1/"),
        *("http://169.254.169.254/", "http://[fe80::1]/", "http://192.168.0.1/", "http://[::ffff:7f00:1]/"),
        *("http://[64:ff9b::7f00:1]/", "http://①②⑦.⓪.⓪.①/", "http://[2002:7f00:1::]/"),
    ],
)  # fmt: skip
def test_this_machine_and_its_network_are_never_reached(bench: Bench, url: str) -> None:
    said = guarded(bench, url)
    assert "not a public address" in said or "not found" in said or "host" in said


def test_one_private_answer_among_public_ones_spoils_all(bench: Bench) -> None:
    async def resolver(host: str, port: int) -> Sequence[str]:
        return ["93.184.216.34", "127.0.0.1"]

    assert "not a public address" in guarded(bench, "http://mixed.example/", resolver)


def test_a_name_is_resolved_once_and_the_checked_address_is_used(bench: Bench) -> None:
    asked: list[str] = []

    async def resolver(host: str, port: int) -> Sequence[str]:
        asked.append(host)  # a rebinding name server would lie from the second time on
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    async def main() -> tuple[ToolResult, Site]:
        async with Site(answer(b"hello", "Content-Type: text/plain")) as site:
            tool = WebFetch(
                spawner=programs.Groups(),
                max_output_chars=10_000,
                allow_loopback=True,
                resolver=resolver,
            )
            url = f"http://rebinding.example:{site.port}/"
            return await tool.run(bench.call(url=url)), site

    result, site = asyncio.run(main())
    assert "hello" in text_of(result)
    assert asked == ["rebinding.example"]
    assert site.requests[0][1]["host"] == f"rebinding.example:{site.port}"


def test_the_system_is_asked_for_names() -> None:
    assert "127.0.0.1" in asyncio.run(net.resolve("localhost", 80))
    with pytest.raises((OSError, UnicodeError)):
        asyncio.run(net.resolve("x" * 100, 80))


def test_a_failed_status_with_a_picture_is_still_told(bench: Bench) -> None:
    handle = answer(b"\0\1", "Content-Type: application/x-thing", status="403 Forbidden")
    result, _ = fetch(bench, handle)
    assert result.outcome is Outcome.TOOL_ERROR
    assert "HTTP 403" in text_of(result)


def test_a_name_nobody_knows_is_told(bench: Bench) -> None:
    async def resolver(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    assert "was not found" in guarded(bench, "http://nowhere.example/", resolver)


def test_a_closed_port_is_told(bench: Bench) -> None:
    assert "could not be fetched" in bench.refusal("web_fetch", url="http://127.0.0.1:1/")


def test_cancelling_closes_the_connection(bench: Bench) -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def handle(target: str, asked: dict[str, str], writer: asyncio.StreamWriter) -> None:
            begun.set()
            await asyncio.sleep(60)

        async with Site(handle) as site:
            task = asyncio.ensure_future(bench.go("web_fetch", url=site.url))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
