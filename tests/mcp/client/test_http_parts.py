"""The pieces below an HTTP connection, each alone: bodies, events, headers by origin, proxies."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage

from kage.core.servers import Stage
from kage.mcp.client.transport.address import Address
from kage.mcp.client.transport.body import Body, Unusable
from kage.mcp.client.transport.carrier import Carrier
from kage.mcp.client.transport.errand import Errand, GivenUp, Kind, Term
from kage.mcp.client.transport.events import OldStream
from kage.mcp.client.transport.judge import Judge, bare
from kage.mcp.client.transport.parse import ANSWER_TOO_LONG, INVALID_ANSWER
from kage.mcp.client.wire.exchange import Exchange, Written
from tests.mcp.client.harness import bench, run, text
from tests.mcp.client.test_http import LEGACY, web
from tests.stubs.http_server import serving
from tests.waiting import until

HERE = "http://127.0.0.1:8000/sse"


class Pieces(httpx2.AsyncByteStream):
    """A body that comes in given pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            await asyncio.sleep(0)
            yield piece


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut ``data`` at ``places``."""
    marks = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(marks)]


def decoded(pieces: list[bytes], encoding: str, most: int | None = None) -> bytes:
    async def main() -> bytes:
        body = Body(Pieces(pieces), encoding=encoding, most=most, term=Term(10))
        return b"".join([piece async for piece in body])

    return asyncio.run(main())


@settings(max_examples=15)
@given(data=st.binary(max_size=2000), places=st.lists(st.integers(0, 5000), max_size=6))
def test_a_packed_body_reads_the_same_however_it_is_cut(data: bytes, places: list[int]) -> None:
    bare_deflate = zlib.compressobj(wbits=-15)
    raw = bare_deflate.compress(data) + bare_deflate.flush()
    for encoding, packed in (
        ("", data),
        ("identity", data),
        ("gzip", gzip.compress(data)),
        ("deflate", zlib.compress(data)),
        ("gzip", gzip.compress(data[:10]) + gzip.compress(data[10:])),
    ):
        assert decoded(cut(packed, places), encoding) == data
    assert decoded(cut(raw, places), "deflate") == data


@settings(max_examples=15)
@given(
    data=st.binary(min_size=1, max_size=300), encoding=st.sampled_from(["gzip", "deflate", "br"])
)
def test_a_body_that_is_not_what_it_says_is_refused(data: bytes, encoding: str) -> None:
    try:
        found = decoded([data], encoding)
    except Unusable:
        return
    assert encoding != "br" and len(found) < 1 << 20  # by chance it was valid


def test_a_bomb_stops_at_the_limit() -> None:
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(40)) + packer.flush()
    with pytest.raises(Unusable) as caught:
        decoded([bomb], "gzip", most=1 << 20)
    assert caught.value.code == ANSWER_TOO_LONG
    with pytest.raises(Unusable, match="cut off"):
        decoded([gzip.compress(b"x" * 1000)[:-12]], "gzip")


def heard(stream: bytes, *, most: int = 4096, places: list[int] | None = None) -> tuple[Any, ...]:
    """Give what the SDK gets of an old server's stream, the messages, strays and failures."""
    messages: list[Any] = []
    failures: list[str] = []
    strays: list[int] = []

    async def take(item: SessionMessage) -> None:
        messages.append(item.message.model_dump(by_alias=True, exclude_unset=True))

    async def main() -> bytes:
        source = OldStream(
            Pieces(cut(stream, places or [])),
            url=HERE,
            most=most,
            take=take,
            stray=lambda: strays.append(1),
            failed=failures.append,
        )
        seen = b""
        try:
            async for piece in source:
                seen += piece
        except Unusable:
            pass
        return seen

    return asyncio.run(main()), messages, len(strays), failures


ENDPOINT = b"event: endpoint\ndata: /messages?s=1\n\n"


@settings(max_examples=15)
@given(
    places=st.lists(st.integers(0, 5000), max_size=8),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_events_read_the_same_however_they_are_cut(
    places: list[int], end: bytes, mark: bytes
) -> None:
    answer = {"jsonrpc": "2.0", "id": 7, "result": {"a": "ü\n"}}
    pretty = "".join(f"data: {line}\n" for line in json.dumps(answer, indent=1).split("\n"))
    stream = (
        b": hello\n\n" + ENDPOINT + b"event: message\ndata: " + json.dumps(answer).encode()
        + b"\n\n" + b"id: 3\nretry: 5\n" + pretty.encode() + b"\nevent: other\ndata: {}\n\n"
        + b"data: no message\n\n"
    )  # fmt: skip
    stream = mark + stream.replace(b"\n", end)
    seen, messages, strays, failures = heard(stream, places=places)
    assert seen == ENDPOINT and failures == []
    assert messages == [answer, answer] and strays == 1


@settings(max_examples=25)
@given(noise=st.binary(max_size=400), places=st.lists(st.integers(0, 500), max_size=4))
def test_any_stream_is_survived(noise: bytes, places: list[int]) -> None:
    _, _, _, failures = heard(ENDPOINT + noise, places=places)
    assert all("endpoint" in failure for failure in failures)
    _, _, _, failures = heard(noise)
    assert failures or b"endpoint" in noise


def test_an_event_over_the_limit_fails_its_call_only() -> None:
    long = json.dumps({"jsonrpc": "2.0", "id": 7, "result": {"text": "x" * 9000}})
    lines = "".join(
        f"data: {line}\n" for line in json.dumps(json.loads(long), indent=1).split("\n")
    )
    after = b'data: {"jsonrpc": "2.0", "id": 8, "result": {}}\n\n'
    for event in (
        f"data: {long}\n\n",
        lines.replace('"x', '"' + "x" * 3000 + '",\ndata: "', 1) + "\n",
    ):
        _, messages, _, failures = heard(ENDPOINT + event.encode() + after)
        told = [message.get("error", {}).get("code") for message in messages]
        assert messages[-1]["id"] == 8 and failures == []
        assert told[0] in (ANSWER_TOO_LONG, INVALID_ANSWER)
    _, messages, _, _ = heard(ENDPOINT + f"data: {long}\n\n".encode() + after)
    assert [message["id"] for message in messages] == [7, 8]
    assert messages[0]["error"]["code"] == ANSWER_TOO_LONG


# ---- what goes where


class Recording(httpx2.AsyncBaseTransport):
    """Stands in for the network: answers everything, remembers what it was asked."""

    def __init__(self) -> None:
        self.seen: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.seen.append(request)
        return httpx2.Response(
            200, headers={"set-cookie": "a=b; Domain=example.invalid"}, stream=Pieces([b"x" * 100])
        )


def carried(
    url: str, *, headers: Mapping[str, str], sent: Mapping[str, str]
) -> tuple[httpx2.Request, httpx2.Response]:
    async def main() -> tuple[httpx2.Request, httpx2.Response]:
        home = Address(url="https://api.example.invalid/mcp", headers=headers, cwd=Path("/"))
        carrier = Carrier(home, headers=lambda: headers, most=1000, connect=1.0)
        network = Recording()
        carrier._pools["", url.startswith("https")] = network  # type: ignore[assignment]
        response = await carrier.handle_async_request(httpx2.Request("POST", url, headers=sent))
        return network.seen[0], response

    return asyncio.run(main())


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.invalid/mcp",
        "https://api.example.invalid:8443/mcp",
        "https://example.invalid/mcp",
        "https://api.example.invalid.evil.test/mcp",
        "https://xapi.example.invalid/",
    ],
)
def test_another_origin_gets_neither_headers_nor_cookies(url: str) -> None:
    headers = {"Authorization": "Bearer s3cret", "X-Team": "docs"}
    request, response = carried(url, headers=headers, sent={"cookie": "a=b"})
    assert not {"authorization", "x-team", "cookie"} & set(request.headers)
    assert "set-cookie" not in response.headers


def test_the_own_origin_gets_them_and_the_protocol_keeps_its_own() -> None:
    headers = {"Authorization": "Bearer s3cret", "MCP-Session-Id": "mine", "Accept": "text/odd"}
    sent = {"accept": "application/json", "mcp-session-id": "s1", "authorization": "Basic x"}
    request, _ = carried("https://API.example.invalid:443/x", headers=headers, sent=sent)
    assert request.headers["authorization"] == "Bearer s3cret"
    assert request.headers["mcp-session-id"] == "s1"
    assert request.headers["accept"] == "application/json"


@pytest.mark.parametrize(
    ("url", "proxies", "used"),
    [
        ("https://a.test/", {"https": "http://p:1"}, "http://p:1"),
        ("https://a.test/", {"https": "p:1"}, "http://p:1"),
        ("http://a.test/", {"https": "http://p:1"}, ""),
        ("http://a.test/", {"all": "http://p:2"}, "http://p:2"),
        ("https://a.test/", {"all": "http://p:2", "no": "b.test, .a.test"}, ""),
        ("https://x.a.test/", {"all": "http://p:2", "no": "a.test"}, ""),
        ("https://xa.test/", {"all": "http://p:2", "no": "a.test"}, "http://p:2"),
        ("https://a.test/", {"all": "http://p:2", "no": "a.test:443"}, ""),
        ("https://a.test:8/", {"all": "http://p:2", "no": "a.test:443"}, "http://p:2"),
        ("https://a.test/", {"all": "http://p:2", "no": "*"}, ""),
        ("http://localhost:3/", {"all": "http://p:2"}, ""),
        ("http://127.0.0.1:3/", {"http": "http://p:2"}, ""),
        ("http://[::1]:3/", {"http": "http://p:2"}, ""),
    ],
)
def test_a_proxy_is_used_where_the_environment_says_so(
    url: str, proxies: Mapping[str, str], used: str
) -> None:
    async def main() -> str:
        home = Address(url=url, cwd=Path("/"), proxies=proxies)
        return Carrier(home, headers=dict, most=1, connect=1.0)._proxy(httpx2.URL(url))

    assert asyncio.run(main()) == used


# ---- outcomes


def test_a_request_given_up_before_it_left_is_never_sent() -> None:
    async def main() -> None:
        exchange = Exchange()
        errand = Errand(kind=Kind.REQUEST, term=Term(None), id=1, exchange=exchange)
        with exchange.current():
            await errand.trace("connection.connect_tcp.complete", {})
            assert exchange.written is Written.NO
        with pytest.raises(GivenUp):
            await errand.trace("http11.send_request_headers.started", {})
        assert exchange.written is Written.NO

    asyncio.run(main())


def test_an_error_that_names_no_cause_still_says_something() -> None:
    judge = Judge(server="web", url="https://user:pass@host.test/p?token=x")
    errand = Errand(kind=Kind.REQUEST, term=_lasting(), id=1, method="initialize", opening=True)
    for error in (
        httpx2.ConnectError(""),
        ExceptionGroup("many", [OSError(), ValueError("second")]),
        httpx2.ReadTimeout("late"),
        RuntimeError(),
    ):
        ruling = judge.failed(errand, error)
        assert ruling.text and ruling.end is not None
        fault = ruling.end.fault
        assert fault.stage is Stage.HANDSHAKE and fault.why and fault.fix
        assert "pass" not in str(fault) and "token" not in str(fault)
    assert bare("https://[::1") == "its url"


@pytest.mark.parametrize(
    ("root", "outer", "why", "hopeless"),
    [
        (socket.gaierror(-2, "unknown"), httpx2.ConnectError("x"), "host.test is not known", False),
        (ConnectionRefusedError(111, "no"), httpx2.ConnectError("x"), "nothing listens", False),
        (ssl.SSLCertVerificationError("self-signed"), httpx2.ConnectError("x"), "trusted", True),
        (ssl.SSLError(1, "wrong version"), httpx2.ConnectError("x"), "no TLS", True),
        (TimeoutError(), httpx2.ConnectTimeout("x"), "in time", False),
        (TimeoutError(), httpx2.ReadTimeout("x"), "too long", False),
        (None, httpx2.ProxyError("407 no"), "proxy refused: 407", False),
        (None, httpx2.UnsupportedProtocol("gopher"), "cannot be sent", True),
        (None, httpx2.LocalProtocolError("bad header"), "cannot be sent", True),
        (None, ImportError("socksio"), "SOCKS", True),
    ],
)
def test_each_way_the_network_fails_is_told_apart(
    root: BaseException | None, outer: Exception, why: str, hopeless: bool
) -> None:
    outer.__cause__ = ExceptionGroup("all", [root]) if isinstance(root, Exception) else None
    judge = Judge(server="web", url="https://user:pass@host.test/p")
    found, fix, stays = judge.cause(outer)
    assert why in found and fix and stays is hopeless and "pass" not in found


def _lasting() -> Term:
    async def main() -> Term:
        return Term(None)

    return asyncio.run(main())


def test_an_answer_nobody_waits_for_lets_its_connection_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kage.mcp.client.transport.errand._GRACE", 0.1)

    async def main() -> None:
        with serving(*LEGACY) as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, tool_timeouts={"fault": 0.2}))
                await until(lambda: bool(stub.listening), what="its stream is open, and counted")
                before = len(stub.connections)
                for how in ("drip", "drip_json", "hang"):
                    assert "given up" in text(await b.call("web__fault", {"how": how}))
                # one is kept for the next call, and the stub does not notice the end of the hang
                await until(
                    lambda: len(stub.connections) <= before + 2, what="the drips are let go"
                )
                assert text(await b.call("web__echo", {"text": "on"})) == "on"

    run(main)


def test_an_answer_can_be_fetched_by_coming_back_and_only_while_it_is_waited_for(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        with serving(*LEGACY) as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, tool_timeouts={"fault": 1.5}))
                assert text(await b.call("web__fault", {"how": "resume"})) == "resumed"
                assert "given up" in text(await b.call("web__fault", {"how": "resume:never"}))

                def returns() -> int:
                    streams = stub.seen(http="GET")
                    return len([seen for seen in streams if "last-event-id" in seen["headers"]])

                stub.resumable = b""
                before = returns()
                for number in range(10):
                    assert text(await b.call("web__echo", {"text": str(number)})) == str(number)
                    await asyncio.sleep(0.03)
                assert returns() <= before + 1

    run(main)
