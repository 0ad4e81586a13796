"""What real servers, and those that mean harm, do over HTTP: odd streams, TLS, who one is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kage.core.messages import Outcome
from kage.core.redact import Redactor
from kage.core.servers import ServerState
from kage.mcp.client.oauth.logins import Logins
from kage.mcp.client.oauth.vault import Vault
from kage.mcp.client.transport.errand import Errand, Kind, Term
from kage.mcp.client.transport.judge import Judge
from tests.certificates import certificate
from tests.mcp.client.harness import bench, run, text
from tests.mcp.client.test_http import LEGACY, web
from tests.stubs.http_server import serving

GOOD = "data: {answer}\n\n"


def logins(folder: Path) -> Logins:
    redactor = Redactor()
    vault = Vault(folder / "oauth", redactor=redactor, notice=lambda text: None)
    return Logins(vault, environ={}, redactor=redactor)


@pytest.mark.parametrize(
    ("stream", "outcome", "says"),
    [
        ("\ufeff" + GOOD, Outcome.OK, "whole"),
        ("\ufeff: hello\r\revent: message\rdata: {answer}\r\r", Outcome.OK, "whole"),
        ("id: 1\r\nevent: message\r\ndata: {answer}\r\n\r\n", Outcome.OK, "whole"),
        ("data: {other}\n\n" + GOOD, Outcome.OK, "whole"),
        (GOOD * 3, Outcome.OK, "whole"),
        ("data: {other}\n\n", Outcome.UNKNOWN, "broke off"),
        ("data: {answer}\n", Outcome.UNKNOWN, "broke off"),
        ("retry: " + "9" * 400 + "\n\n", Outcome.UNKNOWN, "broke off"),
    ],
    ids=[
        "mark", "returns", "both", "another answer first", "three times", "another answer",
        "unfinished", "endless time",
    ],
)  # fmt: skip
def test_a_stream_of_events_is_read_as_written_and_costs_at_most_its_call(
    tmp_path: Path, stream: str, outcome: Outcome, says: str
) -> None:
    async def main() -> None:
        with serving(*LEGACY) as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url))
                result = await b.call("web__fault", {"how": f"events:{stream}"})
                assert (result.outcome, says in text(result)) == (outcome, True), text(result)
                assert text(await b.call("web__echo", {"text": "on"})) == "on"
                assert len(stub.seen("initialize")) == 1

    run(main)


@pytest.mark.parametrize("wait", ["-5", "9" * 400, "soon"], ids=["none", "endless", "odd"])
def test_a_wait_that_is_no_time_costs_at_most_its_call(tmp_path: Path, wait: str) -> None:
    async def main() -> None:
        with serving(*LEGACY) as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, tool_timeouts={"fault": 0.5}))
                stream = f"id: 1\nretry: {wait}\ndata:\n\n"
                result = await b.call("web__fault", {"how": f"events:{stream}"})
                assert result.outcome is Outcome.UNKNOWN
                assert b.status("web").state is ServerState.CONNECTED
                assert text(await b.call("web__echo", {"text": "on"})) == "on"

    run(main)


def test_a_user_and_password_in_the_address_are_sent_although_kage_could_sign_in(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        with serving(*LEGACY) as stub:
            url = stub.url.replace("//", "//joe:hunter2@")
            async with bench(tmp_path, logins=logins(tmp_path)) as b:
                await b.up(web(url))
                assert b.status("web").state is ServerState.CONNECTED
            sent = {request["headers"].get("authorization") for request in stub.requests}
            assert sent == {"Basic am9lOmh1bnRlcjI="}
            stub.token = "another"
            async with bench(tmp_path, logins=logins(tmp_path)) as b:
                await b.up(web(url))
                fault = b.status("web").fault
                assert fault is not None and "user and password of its url" in fault.what
                assert "hunter2" not in f"{fault}"

    run(main)


def test_a_redirect_that_would_lose_the_message_is_not_called_another_origin() -> None:
    async def term() -> Term:
        return Term(None)

    judge = Judge(server="web", url="https://a.example/mcp")
    errand = Errand(kind=Kind.REQUEST, term=asyncio.run(term()), method="tools/call")
    near = judge.refused(errand, 302, b"", to="https://a.example/login?next=secret")
    assert "kind 302" in near.text and "origin" not in near.text and "secret" not in near.text
    far = judge.refused(errand, 307, b"", to="https://b.example/mcp")
    assert "same origin" in far.text


def test_an_address_that_never_answers_is_not_called_a_command(tmp_path: Path) -> None:
    async def main() -> None:
        with serving("--fault", "initialize=hang,server/discover=hang") as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, timeout=0.6))
                fault = b.status("web").fault
                assert fault is not None and "within 0.6 s" in fault.what
                assert "url" in fault.fix and "stdin" not in fault.fix

    run(main)


def test_a_certificate_nobody_vouches_for_is_refused_and_the_persons_own_authority_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = certificate(tmp_path, "127.0.0.1")

    async def main() -> None:
        with serving("--tls", str(pem)) as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, headers={"X-Key": "never"}))
                fault = b.status("web").fault
                assert fault is not None and "certificate is not trusted" in fault.why
                assert "SSL_CERT_FILE" in fault.fix and not stub.requests
            monkeypatch.setenv("SSL_CERT_FILE", str(pem))
            async with bench(tmp_path) as b:
                await b.up(web(stub.url))
                assert text(await b.call("web__echo", {"text": "safe"})) == "safe"

    run(main)
