"""What runs the conformance suite, proven without it: the judging, the bridge and the client."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import expected, packages, suite
from tests.conformance.bridge import bridge
from tests.conformance.expected import Case
from tests.stubs.http_server import serving
from tests.stubs.oauth import OAuthStub

ROOT = Path(__file__).resolve().parents[2]
SERVE = (sys.executable, "-m", "kage", "mcp", "serve", "--root")
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}

LINES = """
[[fails]]
legs = ["alpha *"]
side = "client"
scenarios = ["auth/*"]
checks = ["one", "two"]
reason = "not built"

[[skips]]
legs = ["*"]
side = "server"
scenarios = ["tasks-*"]
reason = "not served"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "expected.toml"
    path.write_text(text)
    return path


def test_what_fails_beyond_the_list_and_what_passes_within_it_both_count(tmp_path: Path) -> None:
    found = expected.load(written(tmp_path, LINES))
    case = Case(leg="alpha 2025-11-25", side="client", scenario="auth/x")
    assert found.judge(case, ["one", "two"]) == ([], [])
    assert found.judge(case, ["one", "three"]) == (["three"], ["two"])
    other = Case(leg="latest", side="client", scenario="auth/x")
    assert found.judge(other, ["one"]) == (["one"], [])
    assert found.skipped(Case(leg="latest", side="server", scenario="tasks-a")) == "not served"
    assert not found.skipped(Case(leg="latest", side="client", scenario="tasks-a"))


@pytest.mark.parametrize("cut", ['reason = "not built"', 'checks = ["one", "two"]'])
def test_a_line_without_its_reason_or_checks_is_refused(tmp_path: Path, cut: str) -> None:
    with pytest.raises(ValueError, match="it needs"):
        expected.load(written(tmp_path, LINES.replace(cut, "")))


def test_one_unexpected_failure_ends_the_run_with_1_and_expected_ones_do_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def outcome(**more: Any) -> suite.Outcome:
        case = Case(leg="latest", side="client", scenario="x")
        return suite.Outcome(case=case, passed=3, **more)

    assert suite.told([outcome(failed=["a", "a"]), outcome(skipped="no")]) == 0
    assert "latest client: 3 / 2 / 2 in 1 scenarios, 1 not run" in capsys.readouterr().out
    assert suite.told([outcome(failed=["a", "b", "b"], unexpected=["b"])]) == 1
    assert "3 / 3 / 1 in" in capsys.readouterr().out
    assert suite.told([outcome(stale=["a"])]) == 1


def test_the_list_itself_is_whole() -> None:
    found = expected.load()
    assert all(line.side in ("client", "server") for line in (*found.fails, *found.skips))
    assert not [line for line in found.skips if line.side == "client"]  # all of these are run


def test_without_npm_the_run_says_that_it_was_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(packages.Missing, match="npm"):
        packages.installed("latest")
    assert suite.main(["--scenario", "initialize"]) == 0
    assert "skipped: npm is not on PATH" in capsys.readouterr().err


# ---- the bridge


def post(url: str, message: object, **headers: str) -> tuple[int, dict[str, str], Any]:
    """Post a message; give status, headers and body."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    sent |= {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(message).encode(), sent)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as answer:
            body = answer.read()
            return answer.status, dict(answer.headers), json.loads(body) if body else None
    except urllib.error.HTTPError as error:
        with error:
            body = error.read()
            return error.code, dict(error.headers), json.loads(body) if body else None


def rpc(method: str, number: int = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def modern(method: str, **params: Any) -> dict[str, Any]:
    return rpc(method, 1, _meta=ENVELOPE, **params)


def served(folder: Path, use: Callable[[str], None]) -> None:
    """Run a bridge to a real ``kage mcp serve`` and use it from a thread."""

    async def main() -> None:
        async with bridge((*SERVE, str(folder))) as url:
            await asyncio.to_thread(use, url)

    asyncio.run(main())


def test_sessions_keep_to_themselves_over_the_bridge(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("here it is\n")

    def use(url: str) -> None:
        status, headers, body = post(url, rpc("initialize", 1, **HELLO))
        assert status == 200 and body["result"]["protocolVersion"] == "2025-11-25"
        session = headers["mcp-session-id"]
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert post(url, note, mcp_session_id=session)[0] == 202
        call = rpc("tools/call", 7, name="read", arguments={"path": "a.txt"})
        _, _, body = post(url, call, mcp_session_id=session)
        assert body["id"] == 7 and "here it is" in json.dumps(body["result"])
        assert post(url, rpc("tools/list"))[0] == 400
        assert post(url, rpc("tools/list"), mcp_session_id="another")[0] == 404

    served(tmp_path, use)


def test_requests_that_stand_for_themselves_go_over_the_bridge(tmp_path: Path) -> None:
    version = ENVELOPE["io.modelcontextprotocol/protocolVersion"]

    def use(url: str) -> None:
        def ask(message: dict[str, Any], **more: str) -> tuple[int, Any]:
            given = {"mcp_protocol_version": version, "mcp_method": message["method"], **more}
            status, _, body = post(url, message, **given)
            return status, body

        status, body = ask(modern("tools/list"))
        assert status == 200 and len(body["result"]["tools"]) == 8
        status, body = ask(modern("initialize"))
        assert (status, body["error"]["code"]) == (404, -32601)
        status, body = ask(modern("tools/list"), mcp_method="tools/call")
        assert (status, body["error"]["code"]) == (400, -32020)
        status, body = ask(modern("tools/call", name="read"))  # without Mcp-Name
        assert (status, body["error"]["code"]) == (400, -32020)
        assert post(url, modern("tools/list"), origin="http://evil.example")[0] == 403

    served(tmp_path, use)


# ---- the client the suite runs


def client(url: str, scenario: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run it as the suite does."""
    return subprocess.run(
        (sys.executable, "-m", "tests.conformance.client", url),
        cwd=ROOT,
        env={**os.environ, "MCP_CONFORMANCE_SCENARIO": scenario, **environ},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_the_client_makes_the_calls_it_is_told_to() -> None:
    calls = {"toolCalls": [{"name": "echo", "arguments": {"text": "x"}}, {"name": "no such"}]}
    with serving() as stub:
        done = client(
            stub.url,
            "http-custom-headers",
            MCP_CONFORMANCE_CONTEXT=json.dumps(calls),
            MCP_CONFORMANCE_PROTOCOL_VERSION="2025-11-25",
        )
    assert done.returncode == 0, done.stderr
    assert "echo: ok" in done.stderr


def test_the_client_signs_in_as_a_person_would_and_gives_up_where_it_is_no_use() -> None:
    with OAuthStub() as stub:
        done = client(stub.url, "auth/anything")
        assert done.returncode == 0, done.stderr
        assert stub.count("/mcp", method="tools/call") == 1
        stub.deny = True
        assert client(stub.url, "auth/anything").returncode == 1
