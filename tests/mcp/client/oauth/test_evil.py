"""What a hostile server says about signing in to it: refused with a reason, before it is used."""

from __future__ import annotations

import gzip
import json
from http.server import BaseHTTPRequestHandler

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.core.links import BadLink, check_link, host_of
from kage.mcp.client.oauth.challenge import Challenge
from kage.mcp.client.oauth.guard import Guard
from kage.mcp.client.oauth.problems import Refused, SignInFailed
from kage.mcp.client.oauth.records import BadRecord, Key, Record, dump, expiry, parse
from tests.mcp.client.oauth.house import Kage
from tests.stubs.oauth import OAuthStub

pytestmark = pytest.mark.anyio

EVIL = [
    "file:///etc/passwd",
    "javascript:alert(1)",
    "data:text/html,x",
    "ssh://host/x",
    "http://login.example.com/x",
    "http://169.254.169.254/latest/meta-data",
    "https://169.254.169.254/latest/meta-data",
    "https://10.0.0.1/x",
    "https://192.168.1.1/x",
    "https://[fe80::1]/x",
    "https://[::ffff:169.254.169.254]/x",
    "https://0x7f.1/x",
    "https://2852039166/x",
    "https://user:word@login.example.com/x",
    "https://login.example.com@10.0.0.1/x",
    "https://login.example.com/$(touch${IFS}x)",
    "https://login.example.com/`id`",
    "https://login.example.com/;id",
    "https://login.example.com/|id",
    'https://login.example.com/"x',
    "https://login.example.com/a b",
    "https://login.example.com/a\nb",
    "https://login.example.com/\x1b]52;c;x",
    "https:///nohost",
    "https://login.example.com:99999/x",
    "https://" + "a" * 9000 + ".example/",
    "",
    "//login.example.com/x",
]


@pytest.mark.parametrize("url", EVIL)
def test_an_evil_address_is_refused_for_local_and_remote_servers(url: str) -> None:
    for own in ("http://127.0.0.1:8000/mcp", "https://mcp.example.com/mcp"):
        with pytest.raises(Refused, match="its token_endpoint is refused"):
            Guard(own).check(url, "token_endpoint")


def test_this_machine_counts_only_for_a_server_on_it() -> None:
    for url in ("http://127.0.0.1:1/x", "http://localhost:1/x", "http://[::1]:1/x"):
        Guard("http://localhost:8000/mcp").check(url, "x")
        with pytest.raises(Refused):
            Guard("https://mcp.example.com/mcp").check(url, "x")


def test_the_configured_origin_may_be_private_and_others_may_not() -> None:
    guard = Guard("https://10.1.2.3/mcp", "https://192.168.9.9")
    guard.check("https://10.1.2.3/token", "x")
    guard.check("https://192.168.9.9/token", "x")
    for url in ("https://10.1.2.4/token", "https://10.1.2.3:444/token"):
        with pytest.raises(Refused):
            guard.check(url, "x")


@pytest.mark.parametrize(
    "found", [["10.0.0.1"], ["93.184.216.34", "169.254.169.254"], ["127.0.0.1"], ["::1"]]
)
async def test_a_name_that_leads_inside_is_refused(found: list[str]) -> None:
    async def resolver(host: str, port: int) -> list[str]:
        return found

    with pytest.raises(Refused, match="not public"):
        guard = Guard("https://mcp.example.com/mcp", resolver=resolver)
        await guard.addresses("https", "login.example.com", 443)
    own = Guard("https://mcp.example.com/mcp", resolver=resolver)
    assert await own.addresses("https", "mcp.example.com", 443) == found


async def test_an_international_name_is_the_same_origin_in_either_spelling() -> None:
    async def resolver(host: str, port: int) -> list[str]:
        return ["10.0.0.1"]

    guard = Guard("https://MÜLLER.example/mcp", resolver=resolver)
    assert await guard.addresses("https", "xn--mller-kva.example", 443) == ["10.0.0.1"]
    with pytest.raises(Refused):
        await guard.addresses("https", "xn--mller-kva.example", 8443)


async def test_localhost_that_leads_elsewhere_is_refused() -> None:
    async def resolver(host: str, port: int) -> list[str]:
        return ["10.0.0.1"]

    with pytest.raises(Refused):
        guard = Guard("http://localhost:8000/mcp", resolver=resolver)
        await guard.addresses("http", "localhost", 9000)


@pytest.mark.parametrize(
    "key", ["authorization_endpoint", "token_endpoint", "registration_endpoint"]
)
@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "https://169.254.169.254/x", "https://a.example/$(id)"]
)
async def test_evil_server_metadata_is_refused_before_anything_is_sent(
    kage: Kage, stub: OAuthStub, key: str, url: str
) -> None:
    stub.metadata[key] = url
    with pytest.raises(SignInFailed) as failed:
        await kage.login()
    assert key in failed.value.why
    assert not kage.pages
    assert stub.count("/register") == stub.count("/token") == 0


@pytest.mark.parametrize("where", ["header", "list"])
async def test_metadata_at_an_evil_place_is_not_fetched(
    kage: Kage, stub: OAuthStub, where: str
) -> None:
    evil = "http://169.254.169.254/latest"
    if where == "header":
        stub.resource_metadata = evil
    else:
        stub.prm["authorization_servers"] = [evil]
    with pytest.raises(SignInFailed) as failed:
        await kage.login()
    assert "169.254.169.254" in failed.value.why
    assert not kage.pages


async def test_metadata_of_another_issuer_or_resource_is_refused(
    kage: Kage, stub: OAuthStub
) -> None:
    stub.metadata["issuer"] = "https://login.example.com"
    with pytest.raises(SignInFailed, match="issuer"):
        await kage.login()
    stub.metadata.clear()
    stub.prm["resource"] = "https://other.example.com/mcp"
    with pytest.raises(SignInFailed, match="resource"):
        await kage.login()
    assert not kage.pages


def _redirects_inside(handler: BaseHTTPRequestHandler) -> bool:
    _head(handler, 302, ("Location", "http://169.254.169.254/latest"))
    return True


def _loops(handler: BaseHTTPRequestHandler) -> bool:
    _head(handler, 302, ("Location", handler.path))
    return True


def _endless(handler: BaseHTTPRequestHandler) -> bool:
    _head(handler, 200, ("Content-Type", "application/json"), ("Connection", "close"))
    handler.close_connection = True
    try:
        for _ in range(64):
            handler.wfile.write(b" " * (1 << 16))
    except OSError:
        pass
    return True


def _bomb(handler: BaseHTTPRequestHandler) -> bool:
    body = gzip.compress(b" " * (8 << 20))
    length = ("Content-Length", str(len(body)))
    _head(handler, 200, ("Content-Encoding", "gzip"), length)
    handler.wfile.write(body)
    return True


def _deep(handler: BaseHTTPRequestHandler) -> bool:
    body = b"[" * 200_000
    _head(handler, 200, ("Content-Length", str(len(body))))
    handler.wfile.write(body)
    return True


def _head(handler: BaseHTTPRequestHandler, status: int, *headers: tuple[str, str]) -> None:
    handler.send_response(status)
    for name, value in headers:
        handler.send_header(name, value)
    if not any(name in ("Content-Length", "Connection") for name, _ in headers):
        handler.send_header("Content-Length", "0")
    handler.end_headers()


@pytest.mark.parametrize(
    ("how", "word"),
    [
        (_redirects_inside, "169.254.169.254"),
        (_loops, "redirects to"),
        (_endless, "more than 1 MiB"),
        (_bomb, "encoding gzip"),
        (_deep, ""),
    ],
)
async def test_answers_that_lead_astray_end_the_sign_in(
    kage: Kage, stub: OAuthStub, how: object, word: str
) -> None:
    stub.raw_metadata = how  # type: ignore[assignment]  # one of the functions above
    stub.register_status = 404
    with pytest.raises(SignInFailed) as failed:
        await kage.login()
    assert word in failed.value.why
    assert not kage.pages


async def test_what_a_server_says_is_shown_without_control_characters(
    kage: Kage, stub: OAuthStub
) -> None:
    stub.register_status = 400
    stub.metadata["registration_endpoint"] = f"{stub.issuer}/authorize?redirect_uri=%1B[2Jx"
    with pytest.raises(SignInFailed) as failed:
        await kage.login()
    assert "\x1b" not in str(failed.value)


@given(st.text(max_size=300))
def test_any_header_is_read_without_a_fault(header: str) -> None:
    challenge = Challenge.of(401, header)
    assert challenge is not None
    assert challenge.reason
    assert "\x1b" not in challenge.reason


@given(st.text())
def test_any_address_is_judged_without_a_fault(url: str) -> None:
    try:
        check_link(url)
    except BadLink as bad:
        assert str(bad)
    else:
        assert host_of(url).isascii()


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["version", "server", "origin", "url", "client", "expires_at"])
                | st.text(),
                inner,
                max_size=8,
            )
        ),
        max_leaves=12,
    )
)
def test_any_file_is_read_or_refused(value: object) -> None:
    key = Key(server="a", origin="user", url="https://a.example/")
    try:
        parse(json.dumps(value), key)
    except BadRecord as bad:
        assert str(bad)


def test_a_record_comes_back_as_it_was_kept() -> None:
    record = Record(
        server="a", origin="user", url="https://a.example/", access_token="t", expires_at=5.5,
        client={"client_id": "x", "redirect_uris": ["http://127.0.0.1:1/callback"]},
    )  # fmt: skip
    assert parse(dump(record), record.key) == record


@pytest.mark.parametrize("odd", [None, True, "x", -5, 0, 1e300, [], {}, "NaN", "inf"])
def test_an_odd_lifetime_counts_as_none(odd: object) -> None:
    assert expiry(odd) == 0.0


def test_look_alike_hosts_are_spelled_out() -> None:
    assert host_of("https://аpple.example/") == "xn--pple-43d.example"
