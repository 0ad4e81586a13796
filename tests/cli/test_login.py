"""``kage mcp login`` and ``logout`` as a person, a script and the agent's shell use them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.mcp.client.oauth.house import visit
from tests.proof.house import House, running
from tests.stubs.oauth import OAuthStub
from tests.waiting import wait_for


@pytest.fixture
def stub() -> Iterator[OAuthStub]:
    with OAuthStub() as started:
        yield started


@pytest.fixture
def remote(house: House, stub: OAuthStub, tmp_path: Path) -> House:
    """A house with a guarded server, and a browser that goes where it is sent."""
    house.write(f'[mcp.servers.remote]\nurl = "{stub.url}"')
    browser = tmp_path / "browser"
    browser.write_text(
        f"#!{sys.executable} -S\n"
        "import sys, urllib.request\n"
        "opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))\n"
        "opener.open(sys.argv[1], timeout=20).read()\n"
    )
    browser.chmod(0o755)
    house.extra["BROWSER"] = str(browser)
    return house


def test_a_person_signs_in_and_the_server_works_until_they_sign_out(
    remote: House, stub: OAuthStub
) -> None:
    before = remote.kage("mcp", "test", "remote", "--json")
    assert (before.code, before.json["state"]) == (1, "needs_auth")
    assert "kage mcp login remote" in before.json["fault"]["fix"]
    signed = remote.kage("mcp", "login", "remote", "--json")
    assert signed.code == 0, signed.err
    assert signed.json["scopes"] == ["mcp"] and signed.json["renewable"]
    address = signed.err.index(stub.issuer)
    assert address < signed.err.index("Your browser opens it")
    said = remote.kage("mcp", "call", "remote__echo", "--json")
    assert said.json["outcome"] == "ok"
    assert remote.kage("mcp", "logout", "remote", "--json").json["forgotten"] == [stub.url]
    assert stub.count("/revoke") == 2
    assert remote.kage("mcp", "logout", "remote").code == 1


def test_the_address_is_pasted_where_no_browser_reaches_kage(
    remote: House, stub: OAuthStub
) -> None:
    words = ("mcp", "login", "remote", "--no-browser")
    with running(remote, *words, stdin=subprocess.PIPE) as login:
        assert login.stderr is not None and login.stdin is not None
        lines = iter(login.stderr)
        page = next(found[1] for line in lines if (found := re.match(r"  (http\S+)$", line)))
        redirect = stub_answer(stub, page)
        login.stdin.write(f"nonsense\n{redirect}\n")
        login.stdin.flush()
        assert login.wait(timeout=30) == 0
        told = login.stderr.read()
    assert "That is not it" in told
    assert "Traceback" not in told and "Fatal" not in told


def stub_answer(stub: OAuthStub, page: str) -> str:
    """Have the person say yes on another machine, where 127.0.0.1 is not kage's."""
    asked = {key: values[0] for key, values in parse_qs(urlsplit(page).query).items()}
    elsewhere = page.replace(asked["redirect_uri"].replace(":", "%3A").replace("/", "%2F"), "x")
    assert elsewhere != page
    stub.codes["by-hand"] = asked
    return f"{asked['redirect_uri']}?code=by-hand&state={asked['state']}&iss={stub.issuer}"


@pytest.mark.parametrize("verb", ["login", "logout"])
def test_the_agents_shell_neither_signs_in_nor_out(
    remote: House, stub: OAuthStub, verb: str
) -> None:
    refused = remote.kage("mcp", verb, "remote", environ={"KAGE_AGENT": "1"})
    assert refused.code == 2 and "own shell" in refused.err
    assert stub.seen == []


def test_what_cannot_be_signed_in_to_says_why(remote: House, stub: OAuthStub) -> None:
    remote.write(
        f'[mcp.servers.local]\ncommand = "true"\n[mcp.servers.never]\nurl = "{stub.url}"',
        f'auth = "none"\n[mcp.servers.header]\nurl = "{stub.url}"',
        'headers = { authorization = "Bearer x" }',
    )
    for name, word in (("local", "started by kage"), ("never", "none"), ("header", "own auth")):
        refused = remote.kage("mcp", "login", name)
        assert refused.code == 2 and word in refused.err, refused.err
    rejected = remote.kage("mcp", "test", "header", "--json").json["fault"]
    assert "Authorization header" in rejected["what"]
    assert stub.count("/register") == 0


def test_a_project_entry_is_not_signed_in_to_before_it_is_trusted(
    remote: House, stub: OAuthStub
) -> None:
    (remote.workspace / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"team": {"url": stub.url}}})
    )
    refused = remote.kage("mcp", "login", "team")
    assert refused.code == 2 and "kage mcp trust team" in refused.err
    assert stub.seen == []


def test_a_run_without_a_person_opens_nothing_and_says_what_to_do(
    remote: House, stub: OAuthStub
) -> None:
    ended = remote.kage("--require-mcp", "--model", "offline", "-p", "remote__echo")
    assert ended.code == 3
    assert ended.lines("remote", "sign in") and "kage mcp login remote" in ended.err
    assert stub.count("/authorize") == stub.count("/register") == 0


def test_a_missing_variable_is_named(remote: House, stub: OAuthStub) -> None:
    remote.write(
        f'[mcp.servers.remote]\nurl = "{stub.url}"\n[mcp.servers.remote.oauth]',
        'client_id = "me"\nclient_secret = "${NOT_SET_AT_ALL}"',
    )
    failed = remote.kage("mcp", "login", "remote")
    assert failed.code == 1 and "NOT_SET_AT_ALL" in failed.err
    assert visit(f"{stub.issuer}/nothing")[0] == 404


def test_a_running_kage_that_waits_connects_after_a_login_in_another_shell(
    remote: House, stub: OAuthStub
) -> None:
    with remote.terminal() as terminal:
        pid = terminal.process.pid
        wait_for(lambda: _states(remote, pid) == ["needs_auth"], what="it waits for a sign-in")
        signed = remote.kage("mcp", "login", "remote")
        assert signed.code == 0 and "is connected to it now" in signed.err
        assert _states(remote, pid) == ["connected"]


def _states(house: House, pid: int) -> list[str]:
    found = house.kage("mcp", "status", "--json", "--pid", str(pid))
    return [server["state"] for server in found.json] if found.code == 0 else []
