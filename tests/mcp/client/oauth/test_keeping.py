"""What is kept of a sign-in, how it is renewed, and how it is lost."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from pathlib import Path

import pytest

from kage.mcp.client.oauth.logins import Logins
from kage.mcp.client.oauth.problems import NeedsAuth
from kage.mcp.client.oauth.vault import Vault
from tests.mcp.client.oauth.house import INITIALIZE, Kage
from tests.stubs.oauth import OAuthStub

pytestmark = pytest.mark.anyio


async def test_tokens_are_kept_private_bound_to_server_and_issuer(
    kage: Kage, stub: OAuthStub
) -> None:
    await kage.login()
    (file,) = kage.vault.folder.glob("*.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(kage.vault.folder.stat().st_mode) == 0o700
    record = kage.record
    assert record.issuer.rstrip("/") == stub.issuer
    assert record.expires_at > 0
    assert record.access_token in file.read_text()
    assert kage.redactor(f"x {record.access_token} y") == "x [redacted:remote access token] y"
    assert record.refresh_token not in kage.redactor(record.refresh_token)


async def test_an_expired_token_is_renewed_and_what_the_answer_leaves_out_is_kept(
    kage: Kage, stub: OAuthStub
) -> None:
    stub.expires_in = 30  # within the time a token is renewed early
    stub.refresh_again = stub.rotate = False
    first = await kage.login()
    await kage.post(INITIALIZE)
    await kage.post(INITIALIZE)
    assert stub.count("/token", grant_type="refresh_token") == 2
    assert kage.record.access_token != first.access_token
    assert kage.record.refresh_token == first.refresh_token
    assert kage.record.scope == first.scope


async def test_a_token_without_an_end_is_renewed_when_it_is_refused(
    kage: Kage, stub: OAuthStub
) -> None:
    stub.expires_in = None
    await kage.login()
    assert kage.record.expires_at == 0
    stub.expire()
    answer = await kage.post(INITIALIZE)
    assert answer.status_code == 200
    assert stub.count("/token", grant_type="refresh_token") == 1


async def test_parallel_requests_renew_once(kage: Kage, stub: OAuthStub) -> None:
    await kage.login()
    stub.expire()
    stub.refresh_delay = 0.1
    async with kage.client() as client:
        answers = await asyncio.gather(*(client.post(stub.url, json=INITIALIZE) for _ in range(10)))
    assert {answer.status_code for answer in answers} == {200}
    assert stub.count("/token", grant_type="refresh_token") == 1


@pytest.mark.parametrize("error", ["invalid_grant", "invalid_client"])
async def test_a_refused_renewal_wants_a_person_and_is_not_tried_again(
    kage: Kage, stub: OAuthStub, error: str
) -> None:
    await kage.login()
    stub.expire()
    stub.refresh_status, stub.refresh_error = 400, error
    for _ in range(2):
        with pytest.raises(NeedsAuth):
            await kage.post(INITIALIZE)
    assert stub.count("/token", grant_type="refresh_token") == 1
    assert bool(kage.record.client) is (error == "invalid_grant")
    stub.refresh_status = 200
    await kage.login()
    assert (await kage.post(INITIALIZE)).status_code == 200


async def test_a_lost_refresh_token_wants_a_person(kage: Kage, stub: OAuthStub) -> None:
    stub.give_refresh = False
    await kage.login()
    stub.expire()
    with pytest.raises(NeedsAuth):
        await kage.post(INITIALIZE)


async def test_trouble_of_the_authorization_server_keeps_the_tokens(
    kage: Kage, stub: OAuthStub
) -> None:
    first = await kage.login()
    stub.expire()
    stub.refresh_status = 503
    with pytest.raises(NeedsAuth) as refused:
        await kage.post(INITIALIZE)
    assert "503" in refused.value.why
    assert kage.record.refresh_token == first.refresh_token
    stub.refresh_status = 200
    assert (await kage.post(INITIALIZE)).status_code == 200


async def test_signing_out_revokes_and_forgets(kage: Kage, stub: OAuthStub) -> None:
    record = await kage.login()
    (gone,) = await kage.logins.logout("remote")
    assert gone == kage.key
    assert stub.count("/revoke", token=record.refresh_token) == 1
    assert not stub.tokens
    assert kage.vault.load(kage.key) is None
    assert await kage.logins.logout("remote") == ()
    with pytest.raises(NeedsAuth):
        await kage.post(INITIALIZE)


async def test_two_processes_renew_once(kage: Kage, stub: OAuthStub, tmp_path: Path) -> None:
    await kage.login()
    stub.expire()
    stub.refresh_delay = 0.3
    code = (
        "import asyncio, sys; from pathlib import Path\n"
        "from tests.mcp.client.oauth.house import Kage, INITIALIZE\n"
        "class At: url = sys.argv[2]\n"
        "kage = Kage(Path(sys.argv[1]), At())\n"
        "print(asyncio.run(kage.post(INITIALIZE)).status_code)\n"
    )
    line = [sys.executable, "-c", code, str(kage.vault.folder), stub.url]
    running = [
        await asyncio.create_subprocess_exec(*line, stdout=asyncio.subprocess.PIPE)
        for _ in range(2)
    ]
    told = [(await process.communicate())[0].decode().strip() for process in running]
    assert told == ["200"] * 2
    assert stub.count("/token", grant_type="refresh_token") == 1


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"version": 99}', '{"version": 1, "server": 3}', "\udcff"]
)
async def test_a_damaged_file_is_said_and_kept_aside(
    kage: Kage, stub: OAuthStub, damage: str
) -> None:
    await kage.login()
    (file,) = kage.vault.folder.glob("*.json")
    file.write_bytes(damage.encode("utf-8", "surrogateescape"))
    with pytest.raises(NeedsAuth):
        await kage.post(INITIALIZE)
    assert "cannot be read" in kage.notices[0]
    assert list(kage.vault.folder.glob("*.bad"))
    await kage.login()
    assert (await kage.post(INITIALIZE)).status_code == 200


async def test_a_file_of_another_server_is_not_used(kage: Kage, stub: OAuthStub) -> None:
    await kage.login()
    (file,) = kage.vault.folder.glob("*.json")
    data = json.loads(file.read_text())
    data["url"] = "https://elsewhere.example/mcp"
    file.write_text(json.dumps(data))
    with pytest.raises(NeedsAuth):
        await kage.post(INITIALIZE)


async def test_a_folder_nobody_can_write_costs_the_keeping_only(
    stub: OAuthStub, tmp_path: Path
) -> None:
    place = tmp_path / "file"
    place.write_text("no folder")
    kage = Kage(place / "oauth", stub)
    await kage.login()
    assert (await kage.post(INITIALIZE)).status_code == 200
    assert any("could not be kept" in notice for notice in kage.notices)
    assert os.listdir(tmp_path) == ["file"]


class Ring:
    """A keyring in memory."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}
        self.broken = False

    def get_password(self, service_name: str, username: str) -> str | None:
        if self.broken:
            raise RuntimeError("the keyring is locked")
        return self.held.get((service_name, username))

    def set_password(self, service_name: str, username: str, password: str) -> None:
        self.held[service_name, username] = password

    def delete_password(self, service_name: str, username: str) -> None:
        del self.held[service_name, username]


async def test_a_keyring_holds_the_secrets_instead_of_the_file(
    kage: Kage, stub: OAuthStub, tmp_path: Path
) -> None:
    ring = Ring()
    kage.vault = Vault(
        tmp_path / "ring", redactor=kage.redactor, notice=kage.notices.append, keyring=ring
    )
    kage.logins = Logins(kage.vault, environ={}, redactor=kage.redactor)
    record = await kage.login()
    (file,) = kage.vault.folder.glob("*.json")
    assert record.access_token not in file.read_text()
    assert record.access_token in next(iter(ring.held.values()))
    stub.expire()
    assert (await kage.post(INITIALIZE)).status_code == 200
    again = Vault(
        tmp_path / "ring", redactor=kage.redactor, notice=kage.notices.append, keyring=ring
    )
    ring.broken = True
    assert again.load(kage.key) is None
    assert "locked" in kage.notices[-1]
    ring.broken = False
    assert len(await kage.logins.logout("remote")) == 1
    assert not ring.held
