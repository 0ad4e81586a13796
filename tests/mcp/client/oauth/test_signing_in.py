"""Signing in end to end, against a real authorization server on loopback."""

from __future__ import annotations

import asyncio
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from kage.mcp.client.oauth.logins import Page, Target
from kage.mcp.client.oauth.problems import NeedsAuth, Refused, SignInFailed
from tests.mcp.client.oauth.house import ADMIN, ECHO, INITIALIZE, Kage, visit
from tests.stubs.oauth import OAuthStub
from tests.waiting import until

pytestmark = pytest.mark.anyio


async def test_a_sign_in_goes_from_the_refusal_to_a_call(kage: Kage, stub: OAuthStub) -> None:
    with pytest.raises(NeedsAuth) as refused:
        await kage.post(INITIALIZE)
    assert type(refused.value).needs_auth
    assert "kage mcp login remote" in refused.value.fix
    await kage.login()
    answer = await kage.post(ECHO)
    assert answer.json()["result"]["content"]
    asked = stub.last("/authorize")
    assert asked["code_challenge_method"] == "S256"
    assert asked["resource"] == stub.url
    assert stub.last("/token")["resource"] == stub.url
    assert asked["redirect_uri"].startswith("http://127.0.0.1:")
    assert kage.pages[0].host == stub.issuer.removeprefix("http://")


async def test_the_address_can_be_pasted_where_no_browser_reaches_kage(
    kage: Kage, stub: OAuthStub
) -> None:
    complaints: list[str] = []

    async def by_hand(page: Page) -> None:
        ended = await asyncio.to_thread(_ends_at, page.url)
        for wrong in ("", "abc", ended.replace("state=", "state=x"), ended.partition("&")[0]):
            try:
                page.paste(wrong)
            except Refused as refused:
                complaints.append(str(refused))
        page.paste(f"  {ended}\n")

    await kage.logins.login(kage.target(), by_hand, timeout=20)
    assert len(complaints) == 4
    assert (await kage.post(INITIALIZE)).status_code == 200


def _ends_at(url: str) -> str:
    """Follow the page up to where it sends the browser back to kage."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *args: object) -> None:
            return None

    opener = urllib.request.build_opener(Stay, urllib.request.ProxyHandler({}))
    try:
        opener.open(url, timeout=20)
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.headers["Location"]
    raise AssertionError("it did not redirect")


async def test_a_page_that_guesses_does_not_end_the_waiting(kage: Kage, stub: OAuthStub) -> None:
    tried: list[int] = []

    async def attacked(page: Page) -> None:
        port = stub.last("/register")["redirect_uris"][0].split(":")[2].partition("/")[0]
        for path in ("/callback?code=1&state=guess", "/callback?error=x&state=y", "/", "/callback"):
            status, _ = await asyncio.to_thread(visit, f"http://127.0.0.1:{port}{path}")
            tried.append(status)
        await kage.browse(page)

    await kage.logins.login(kage.target(), attacked, timeout=20)
    assert tried == [400, 400, 404, 400]


async def test_a_wrong_state_never_signs_in(kage: Kage, stub: OAuthStub) -> None:
    stub.state = "of-somebody-else"
    with pytest.raises(SignInFailed) as failed:
        await kage.logins.login(kage.target(), kage.browse, timeout=1.5)
    assert "nobody signed in" in failed.value.why
    assert stub.count("/token") == 0


@pytest.mark.parametrize("issuer", ["https://evil.example", None])
async def test_an_answer_of_another_issuer_is_refused(
    kage: Kage, stub: OAuthStub, issuer: str | None
) -> None:
    stub.with_iss = issuer
    stub.metadata["authorization_response_iss_parameter_supported"] = True
    with pytest.raises(SignInFailed, match="iss"):
        await kage.login()
    assert stub.count("/token") == 0


async def test_a_no_of_the_person_is_told_as_it_was_said(kage: Kage, stub: OAuthStub) -> None:
    stub.deny = True
    with pytest.raises(SignInFailed) as failed:
        await kage.login()
    assert "access_denied: the person said no" in failed.value.why


@pytest.mark.parametrize("where", ["redirect", "token"])
async def test_scopes_the_server_names_and_refuses_are_left_out(
    kage: Kage, stub: OAuthStub, where: str
) -> None:
    stub.scope_error = where
    stub.scopes = ["everything", "and", "more"]
    await kage.login()
    assert len(kage.pages) == 2
    assert "scope=" in kage.pages[0].url
    assert "scope=" not in kage.pages[1].url


async def test_configured_scopes_are_asked_for_instead_of_all(
    tmp_path: Path, stub: OAuthStub
) -> None:
    stub.scopes = ["everything", "and", "more"]
    kage = Kage(tmp_path, stub, scopes=("little",))
    await kage.login()
    assert stub.last("/authorize")["scope"] == "little"


async def test_a_call_that_needs_more_scopes_waits_for_them_and_goes_on(
    tmp_path: Path, stub: OAuthStub
) -> None:
    kage = Kage(tmp_path, stub, waits=20)
    await kage.login()
    async with kage.client() as client:
        await client.post(stub.url, json=INITIALIZE)
        call = asyncio.create_task(client.post(stub.url, json=ADMIN))
        await until(lambda: kage.needed)
        assert "admin" in kage.needed[0].reason
        await kage.login()
        answer = await call
    assert answer.json()["result"]["content"]
    assert stub.last("/authorize")["scope"].split() == ["mcp", "admin"]


async def test_a_call_refused_midway_waits_and_other_requests_do_not(
    tmp_path: Path, stub: OAuthStub
) -> None:
    kage = Kage(tmp_path, stub, waits=20)
    await kage.login()
    ping = {"jsonrpc": "2.0", "id": 9, "method": "ping"}
    async with kage.client() as client:
        await client.post(stub.url, json=INITIALIZE)
        stub.expire()
        stub.refreshes.clear()
        call = asyncio.create_task(client.post(stub.url, json=ECHO))
        await until(lambda: kage.needed)
        assert (await client.post(stub.url, json=ping)).status_code == 401
        assert not call.done()
        await Kage(tmp_path, stub).login()  # another kage, or `kage mcp login` in a shell
        assert (await call).status_code == 200


async def test_nobody_there_means_no_waiting(kage: Kage, stub: OAuthStub) -> None:
    await kage.login()
    async with kage.client() as client:
        await client.post(stub.url, json=INITIALIZE)
        assert (await client.post(stub.url, json=ADMIN)).status_code == 403
    assert kage.needed


async def test_a_port_in_use_is_said_with_what_to_do(tmp_path: Path, stub: OAuthStub) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        kage = Kage(tmp_path, stub, redirect_port=port)
        with pytest.raises(SignInFailed) as failed:
            await kage.login()
    assert f"port {port}" in failed.value.why
    assert "redirect_port" in failed.value.fix
    await kage.login()
    assert stub.last("/authorize")["redirect_uri"] == f"http://127.0.0.1:{port}/callback"


async def test_the_client_is_registered_once(kage: Kage, stub: OAuthStub) -> None:
    await kage.login()
    await kage.login()
    assert stub.count("/register") == 1
    assert len(set(_ports(kage))) == 1


def _ports(kage: Kage) -> list[str]:
    return [str(uri) for uri in kage.record.client["redirect_uris"]]


async def test_a_client_with_a_secret_proves_itself_also_when_it_renews(
    kage: Kage, stub: OAuthStub
) -> None:
    stub.secret = True
    await kage.login()
    stub.expire()
    await kage.post(INITIALIZE)
    sent = [headers for path, headers in stub.headers if path == "/token"]
    assert len(sent) == 2
    assert all(headers["Authorization"].startswith("Basic ") for headers in sent)


async def test_a_configured_client_is_used_without_registering(
    tmp_path: Path, stub: OAuthStub
) -> None:
    stub.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    stub.metadata["registration_endpoint"] = None
    kage = Kage(tmp_path, stub, client_id="mine", client_secret="very-secret")
    await kage.login()
    assert stub.count("/register") == 0
    assert stub.last("/token")["client_secret"] == "very-secret"


async def test_a_server_that_registers_nobody_says_what_to_configure(
    kage: Kage, stub: OAuthStub
) -> None:
    stub.register_status = 403
    with pytest.raises(SignInFailed) as failed:
        await kage.login()
    assert "client_id" in failed.value.fix


async def test_a_client_described_at_an_address_is_not_registered(
    tmp_path: Path, stub: OAuthStub
) -> None:
    stub.metadata["client_id_metadata_document_supported"] = True
    address = "https://kage.example/client.json"
    kage = Kage(tmp_path, stub, client_metadata_url=address)
    await kage.login()
    assert stub.count("/register") == 0
    assert stub.last("/authorize")["client_id"] == address


async def test_where_such_an_address_is_not_taken_the_client_is_registered_once(
    tmp_path: Path, stub: OAuthStub
) -> None:
    kage = Kage(tmp_path, stub, client_metadata_url="https://kage.example/client.json")
    for _ in range(3):
        await kage.login()
    assert stub.count("/register") == 1
    stub.metadata["client_id_metadata_document_supported"] = True
    other = "https://kage.example/other.json"  # an address it has not been asked about
    await Kage(tmp_path, stub, client_metadata_url=other).login()
    assert stub.count("/register") == 1
    assert stub.last("/authorize")["client_id"] == other


async def test_a_machine_signs_in_by_itself(tmp_path: Path, stub: OAuthStub) -> None:
    kage = Kage(
        tmp_path,
        stub,
        grant="client_credentials",
        client_id="robot",
        client_secret="robots-secret",
        issuer=stub.issuer,
    )
    assert (await kage.post(INITIALIZE)).status_code == 200
    stub.expire()
    assert (await kage.post(INITIALIZE)).status_code == 200
    assert stub.count("/token", grant_type="client_credentials") == 2
    assert stub.count("/authorize") == 0


async def test_tokens_of_another_issuer_are_neither_used_nor_renewed(
    kage: Kage, stub: OAuthStub
) -> None:
    await kage.login()
    with OAuthStub() as other:
        stub.prm["authorization_servers"] = [other.issuer]
        stub.expire()
        with pytest.raises(NeedsAuth):
            await kage.post(INITIALIZE)
        assert stub.count("/token", grant_type="refresh_token") == 0
        await kage.login()
        assert other.count("/register") == 1  # the client of the old one is not shown to it
        assert other.count("/token", grant_type="refresh_token") == 0
        assert kage.record.issuer.rstrip("/") == other.issuer


async def test_a_configured_issuer_is_the_only_one(tmp_path: Path, stub: OAuthStub) -> None:
    kage = Kage(tmp_path, stub, issuer="https://login.example.com")
    with pytest.raises(SignInFailed, match="configuration"):
        await kage.login()
    assert stub.count("/authorize") == stub.count("/register") == 0


@pytest.mark.parametrize("change", [{"issuer": "https://b.example"}, {"client_id": "mine"}])
async def test_a_sign_in_the_entry_no_longer_means_is_not_used(
    tmp_path: Path, kage: Kage, stub: OAuthStub, change: dict[str, Any]
) -> None:
    await kage.login()
    stub.expire()
    changed = Kage(kage.vault.folder, stub, **change)
    with pytest.raises(NeedsAuth):
        await changed.post(INITIALIZE)
    same = Kage(kage.vault.folder, stub, issuer=f"{stub.issuer}/")
    assert (await same.post(INITIALIZE)).status_code == 200
    assert stub.count("/token", grant_type="refresh_token") == 1


async def test_the_token_goes_to_no_other_origin(kage: Kage, stub: OAuthStub) -> None:
    await kage.login()
    async with kage.client() as client:
        await client.get(f"{stub.issuer}/elsewhere")
    sent = next(headers for path, headers in stub.headers if path == "/elsewhere")
    assert "Authorization" not in sent


async def test_a_server_nobody_signs_in_to_says_so(kage: Kage, stub: OAuthStub) -> None:
    with OAuthStub() as plain:
        plain.open_server = True
        plain.prm["authorization_servers"] = []
        bare = Kage(kage.vault.folder, plain)
        with pytest.raises(SignInFailed, match="does not ask"):
            await bare.login()


async def test_configured_headers_reach_the_server_alone(kage: Kage, stub: OAuthStub) -> None:
    target = Target(spec=kage.spec, url=stub.url, headers={"X-Team": "canary"})
    await kage.logins.login(target, kage.browse, timeout=20)
    carried = {path for path, headers in stub.headers if "canary" in headers.values()}
    assert carried == {"/mcp"}
