"""Signing in with what an identity provider says of the person; the two are one stub or two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kage.mcp.client.oauth.logins import Logins
from kage.mcp.client.oauth.problems import NeedsAuth
from kage.mcp.client.watchdog import Watchdog
from tests.mcp.client.oauth.house import ADMIN, INITIALIZE, Kage
from tests.stubs.oauth import OAuthStub

pytestmark = pytest.mark.anyio

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@pytest.fixture
def provider() -> Iterator[OAuthStub]:
    with OAuthStub() as running:
        yield running


def vouched(folder: Path, stub: OAuthStub, provider: OAuthStub, **oauth: Any) -> Kage:
    named: dict[str, Any] = {
        "grant": "identity_assertion",
        "issuer": stub.issuer,
        "client_id": "kage-here",
        "client_secret": "the-secret",
        "idp_token_endpoint": f"{provider.issuer}/token",
        "idp_client_id": "kage-there",
        "idp_id_token": "what-it-says-of-me",
    }
    stub.assertions = provider.assertions  # the one trusts the other
    return Kage(folder, stub, **{**named, **oauth})


async def test_an_identity_provider_vouches_and_nobody_opens_a_page(
    tmp_path: Path, stub: OAuthStub, provider: OAuthStub
) -> None:
    kage = vouched(tmp_path, stub, provider)
    assert (await kage.post(INITIALIZE)).status_code == 200
    asked = provider.last("/token")
    assert asked["grant_type"] == EXCHANGE
    assert (asked["audience"], asked["resource"]) == (stub.issuer, stub.url)
    assert (asked["client_id"], asked["subject_token"]) == ("kage-there", "what-it-says-of-me")
    assert stub.count("/token", grant_type=BEARER, resource=stub.url) == 1
    stub.expire()
    assert (await kage.post(INITIALIZE)).status_code == 200  # a new assertion for each token
    assert provider.count("/token", grant_type=EXCHANGE) == 2
    assert stub.count("/authorize") == stub.count("/register") == 0
    text = " ".join(path.read_text() for path in tmp_path.rglob("*.json"))
    assert "access-" in text and "what-it-says-of-me" not in text and "the-secret" not in text


async def test_an_id_token_that_a_program_prints_is_fresh_for_each_exchange(
    tmp_path: Path, stub: OAuthStub, provider: OAuthStub
) -> None:
    count = tmp_path / "count"
    printing = f"echo x >> {count}; printf 'fresh-token-%s\\n' $(wc -l < {count})"
    watchdog = Watchdog()
    kage = vouched(
        tmp_path / "kept", stub, provider,
        idp_id_token="", idp_id_token_command=("/bin/sh", "-c", printing),
    )  # fmt: skip
    kage.logins = Logins(
        kage.vault, environ={}, redactor=kage.redactor, spawner=watchdog, workspace=tmp_path
    )
    try:
        for turn in ("fresh-token-1", "fresh-token-2"):
            assert (await kage.post(INITIALIZE)).status_code == 200
            assert provider.last("/token")["subject_token"] == turn
            assert turn not in kage.redactor(f"it said {turn}")
            stub.expire()
        assert "fresh-token" not in "".join(p.read_text() for p in tmp_path.rglob("*.json"))
        for failing, why in (
            ("exit 3", "exit code 3"),
            ("echo a b", "no token"),
            (":", "no token"),
        ):
            kage.spec = replace(
                kage.spec,
                oauth=replace(kage.spec.oauth, idp_id_token_command=("/bin/sh", "-c", failing)),
            )
            stub.expire()
            with pytest.raises(NeedsAuth) as refused:
                await kage.post(INITIALIZE)
            assert "idp_id_token_command" in refused.value.why and why in refused.value.why
    finally:
        await watchdog.close()


async def test_the_server_has_no_say_in_who_gets_the_assertion(
    tmp_path: Path, stub: OAuthStub, provider: OAuthStub
) -> None:
    kage = vouched(tmp_path, stub, provider)
    with OAuthStub() as thief:
        stub.prm["authorization_servers"] = [thief.issuer]
        assert (await kage.post(INITIALIZE)).status_code == 200
        assert thief.seen == []


async def test_a_call_that_lacks_scopes_has_them_vouched_for_too(
    tmp_path: Path, stub: OAuthStub, provider: OAuthStub
) -> None:
    kage = vouched(tmp_path, stub, provider, scopes=("mcp",))
    assert (await kage.post(ADMIN)).status_code == 200
    assert stub.last("/token")["scope"].split() == ["mcp", "admin"]


@pytest.mark.parametrize(
    ("status", "answer", "word"),
    [
        (400, {"error": "invalid_grant", "error_description": "the token is old"}, "is old"),
        (400, {}, "400"),
        (200, {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}, "else"),
        (200, {"access_token": 5}, "else"),
        (200, {"access_token": ""}, "else"),
    ],
)
async def test_a_provider_that_does_not_vouch_is_told_with_its_reason(
    tmp_path: Path,
    stub: OAuthStub,
    provider: OAuthStub,
    status: int,
    answer: dict[str, Any],
    word: str,
) -> None:
    provider.vouch_status, provider.vouched = status, answer
    with pytest.raises(NeedsAuth, match="wants you to sign in") as refused:
        await vouched(tmp_path, stub, provider).post(INITIALIZE)
    assert word in refused.value.why
    assert stub.count("/token") == 0


async def test_a_token_endpoint_beside_the_issuer_gets_no_secret(
    tmp_path: Path, stub: OAuthStub, provider: OAuthStub
) -> None:
    stub.metadata["token_endpoint"] = f"{provider.issuer}/token"
    with pytest.raises(NeedsAuth):
        await vouched(tmp_path, stub, provider).post(INITIALIZE)
    assert provider.seen == []
