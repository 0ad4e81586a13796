"""What goes wrong over HTTP: one answer costs one call, and a server that is not there says why."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kage.config.schema import RestartSpec, ServerSpec
from kage.core.messages import Outcome
from kage.core.servers import ServerState
from kage.core.tools import ToolResult
from kage.mcp.client.servers.eras import Eras
from tests.mcp.client.harness import bench, run, text
from tests.mcp.client.test_http import LEGACY, web
from tests.stubs.http_server import serving
from tests.waiting import until

ONCE = RestartSpec(enabled=False)
UNKNOWN, ERROR = Outcome.UNKNOWN, Outcome.TOOL_ERROR


@pytest.mark.parametrize("revisions", [LEGACY, ()], ids=["legacy", "modern"])
@pytest.mark.parametrize(
    ("how", "outcome", "said"),
    [
        ("cut", UNKNOWN, "cut off"),
        ("bad_chunk", UNKNOWN, "cut off or is no HTTP"),
        ("reset", UNKNOWN, "broke off"),
        ("hang_up", UNKNOWN, "cut off or is no HTTP"),
        ("sse_cut", UNKNOWN, "broke off"),
        ("nothing", UNKNOWN, "HTTP 202 with nothing"),
        ("html", UNKNOWN, "text/html"),
        ("big_head", UNKNOWN, "no HTTP"),
        ("bad_gzip", UNKNOWN, "no valid gzip"),
        ("500", UNKNOWN, "HTTP 500"),
        ("503:try later", UNKNOWN, "try later"),
        ("429", UNKNOWN, "HTTP 429"),
        ("401", ERROR, "HTTP 401"),
        ("403", ERROR, "HTTP 403"),
        ("405", ERROR, "HTTP 405"),
        ("garbage", ERROR, "cannot read"),
        ("other_id", ERROR, "no answer to this request"),
        ("null_result", ERROR, "its result is null"),
        ("sse_garbage", ERROR, "no valid JSON-RPC"),
        ("redirect://127.0.0.2:1/mcp", ERROR, "redirects to http://127.0.0.2:1/mcp"),
        ("redirect:loop", ERROR, "HTTP 307"),
        ("packed:br", UNKNOWN, "'br', unasked"),
    ],
)
def test_one_bad_answer_costs_one_call(
    tmp_path: Path, revisions: tuple[str, ...], how: str, outcome: Outcome, said: str
) -> None:
    async def main() -> None:
        with serving(*revisions) as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url))
                beside = asyncio.create_task(b.call("web__slow", {"seconds": 0.3}))
                await until(lambda: bool(stub.seen("tools/call")), what="a call runs")
                result = await b.call("web__fault", {"how": how})
                assert result.outcome is outcome, text(result)
                assert said in text(result) and "web" in text(result)
                assert text(await beside) == "slept"
                assert text(await b.call("web__echo", {"text": "on"})) == "on"
                assert b.states("web") == ["connecting", "connected"]
                faults = [
                    call
                    for call in stub.seen("tools/call")
                    if call["message"]["params"]["name"] == "fault"
                ]
                assert len(faults) == (5 if how == "redirect:loop" else 1)  # never twice

    run(main)


@pytest.mark.parametrize("how", ["huge:3", "gzip_bomb:40", "sse_huge:3"])
def test_an_answer_over_the_limit_is_not_kept(tmp_path: Path, how: str) -> None:
    async def main() -> None:
        with serving() as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, max_message_bytes=1 << 20))
                result = await b.call("web__fault", {"how": how})
                assert result.outcome is Outcome.TOOL_ERROR
                assert "longer than" in text(result) and "max_message_bytes" in text(result)
                assert text(await b.call("web__echo", {"text": "on"})) == "on"

    run(main)


@pytest.mark.parametrize("how", ["packed:gzip", "packed:deflate", "packed:raw", "redirect"])
def test_an_answer_may_be_packed_or_come_from_the_same_origin(tmp_path: Path, how: str) -> None:
    async def main() -> None:
        with serving("--json") as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, headers={"X-Team": "docs"}))
                assert text(await b.call("web__fault", {"how": how})) == "whole"
                assert stub.requests[-1]["headers"]["x-team"] == "docs"

    run(main)


@pytest.mark.parametrize("how", ["drip", "drip_json", "hang"])
@pytest.mark.parametrize("revisions", [LEGACY, ()], ids=["legacy", "modern"])
def test_a_drip_ends_by_the_limit_of_its_call(
    tmp_path: Path, how: str, revisions: tuple[str, ...]
) -> None:
    async def main() -> None:
        with serving(*revisions) as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, tool_timeouts={"fault": 0.4}))
                result = await b.call("web__fault", {"how": how})
                assert result.outcome is Outcome.UNKNOWN and "given up" in text(result)
                assert text(await b.call("web__echo", {"text": "on"})) == "on"

    run(main)


def test_a_header_never_reaches_another_origin(tmp_path: Path) -> None:
    async def main() -> None:
        with serving() as other, serving(f"--fault=tools/list=redirect:{other.url}") as stub:
            async with bench(tmp_path) as b:
                headers = {"Authorization": "Bearer s3cret-token"}
                await b.up(web(stub.url, headers=headers, restart=ONCE))
                fault = b.status("web").fault
                assert fault is not None and "same origin" in fault.why
                assert other.requests == []

    run(main)


# ---- a start that fails


async def _fault_of(folder: Path, entry: ServerSpec) -> Any:
    async with bench(folder) as b:
        await b.up(entry)
        status = b.status(entry.name)
        assert status.fault is not None
        return status.fault


@pytest.mark.parametrize(
    ("how", "what", "why", "fix"),
    [
        ("401", "wants to know who you are", "HTTP 401", "kage mcp login web"),
        ("403", "cannot be reached", "HTTP 403", "headers"),
        ("404", "No MCP server answers", "HTTP 404", "url"),
        ("500", "cannot be reached", "HTTP 500", "later"),
        ("503:down for repairs", "cannot be reached", "down for repairs", "later"),
        ("html", "No MCP server answers", "text/html", "web page"),
        ("nothing", "No MCP server answers", "HTTP 202", "url"),
        ("reset", "cannot be reached", "broke off", "log"),
        ("cut", "cannot be reached", "cut off", "log"),
        ("redirect://127.0.0.2:1/mcp", "cannot be reached", "redirects to", "if you trust it"),
    ],
)
def test_a_start_that_fails_says_why_and_what_to_do(
    tmp_path: Path, how: str, what: str, why: str, fix: str
) -> None:
    async def main() -> None:
        with serving("--fault", f"initialize={how}", *LEGACY) as stub:
            fault = await _fault_of(tmp_path, web(stub.url, restart=ONCE))
            assert (what in fault.what, why in fault.why, fix in fault.fix) == (True,) * 3, fault

    run(main)


def test_what_cannot_be_reached_says_so_at_once(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def main() -> None:
        begin = time.monotonic()
        refused = await _fault_of(tmp_path, web(f"http://127.0.0.1:{port}/mcp", restart=ONCE))
        assert "nothing listens" in refused.why and f"127.0.0.1:{port}" in refused.what
        with serving() as stub:
            plain = await _fault_of(
                tmp_path, web(stub.url.replace("http:", "https:"), restart=ONCE)
            )
            assert "TLS" in plain.why and plain.fix
        assert time.monotonic() - begin < 20

    run(main)


def test_a_refused_authorization_header_is_named(tmp_path: Path) -> None:
    class Logins:
        def auth(self, spec: ServerSpec, url: str) -> None:
            raise AssertionError("an entry with a header of its own is not signed in")

    async def main() -> None:
        with serving("--token", "right-token") as stub:
            async with bench(tmp_path) as b:
                services = b.manager._home.services
                object.__setattr__(services, "logins", Logins())
                headers = {"authorization": "Bearer wrong-token"}
                await b.up(web(stub.url, headers=headers))
                fault = b.status("web").fault
                assert fault is not None and "refused the Authorization header" in fault.what
                assert b.status("web").state is ServerState.FAILED
                assert len(stub.requests) == 1  # neither repeated nor signed in elsewhere

    run(main)


def test_a_login_that_is_needed_ends_the_start_and_a_connection(tmp_path: Path) -> None:
    import httpx2

    class NeedsAuth(Exception):
        needs_auth = True

    class Auth(httpx2.Auth):
        async def async_auth_flow(self, request: httpx2.Request) -> Any:
            response = yield request
            if response.status_code == 401:
                raise NeedsAuth("no token is stored")

    class Logins:
        def auth(self, spec: ServerSpec, url: str) -> httpx2.Auth:
            return Auth()

    async def main() -> None:
        with serving("--token", "right-token") as stub:
            async with bench(tmp_path) as b:
                object.__setattr__(b.manager._home.services, "logins", Logins())
                await b.up(web(stub.url))
                assert b.status("web").state is ServerState.NEEDS_AUTH
                fault = b.status("web").fault
                assert fault is not None and "no token is stored" in fault.why
                assert "kage mcp login web" in fault.fix
                stub.token = ""
                await b.up(web(stub.url, name="later"))
                stub.token = "right-token"
                result = await b.call("later__echo", {"text": "x"})
                assert "sign in" in text(result)
                await b.state("later", ServerState.NEEDS_AUTH)
                assert "later" in await b.apply() and not b.tools

    run(main)


# ---- outcomes


def test_a_call_that_never_left_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        with serving("--json", *LEGACY) as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, health_interval=0))
                stub.stop()  # nothing listens there any more
                results: list[ToolResult] = []
                await until(lambda: not stub.alive, what="its connections are gone")
                results.append(await b.call("web__echo", {"text": "x"}))
                results.append(await b.call("web__echo", {"text": "y"}))
                assert results[-1].outcome is Outcome.NEVER_SENT, text(results[-1])
                assert "Nothing happened" in text(results[-1])

    run(main)


# ---- headers of a program


def _printing(folder: Path, body: str) -> tuple[str, ...]:
    script = folder / "token.py"
    script.write_text(body)
    return (sys.executable, "-I", "-S", str(script))


def test_a_program_gives_headers_and_is_asked_again_when_they_are_refused(tmp_path: Path) -> None:
    counter = tmp_path / "count"
    command = _printing(
        tmp_path,
        f"import json, os\npath = {str(counter)!r}\n"
        "n = os.path.exists(path) and int(open(path).read()) or 0\n"
        "open(path, 'w').write(str(n + 1))\n"
        "print(json.dumps({'Authorization': f'Bearer token-{n + 1}-secret', 'X-Env': "
        "os.environ.get('OPENAI_API_KEY', 'none') + os.environ.get('PLAIN', 'none')}))\n",
    )

    async def main() -> None:
        with serving("--token", "token-1-secret") as stub:
            environ = {"OPENAI_API_KEY": "sk-model-key", "PLAIN": "variable"}
            async with bench(tmp_path, environ=environ) as b:
                await b.up(web(stub.url, headers_command=command))
                assert counter.read_text() == "1"
                assert "token-1" not in text(await b.call("web__headers"))
                assert stub.requests[-1]["headers"]["x-env"] == "nonenone"
                stub.token = "token-2-secret"
                calls = (b.call("web__echo", {"text": "new"}) for _ in range(5))
                assert {text(result) for result in await asyncio.gather(*calls)} == {"new"}
                assert counter.read_text() == "2"  # once, however many were refused
                stub.token = "never"
                refused = await b.call("web__echo", {"text": "no"})
                assert "401" in text(refused) and "token-" not in text(refused)
                assert b.status("web").state is ServerState.CONNECTED

    run(main)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("print('Authorization: Bearer abcdef')\nprint('X-Two: 2')", ""),
        ("import sys; sys.exit('no ticket')", "exit code 1: no ticket"),
        ("print('')", "printed nothing"),
        ("print('{\"a\": 1}')", "no header"),
        ("print('just words')", "line 1"),
        ("print('{broken')", "no valid JSON"),
        ("print('X-A: b\\x01c')", "X-A"),
        ("print('x' * 100000)", "64 KiB"),
    ],
)
def test_what_a_program_prints_is_checked(tmp_path: Path, body: str, why: str) -> None:
    async def main() -> None:
        with serving() as stub:
            entry = web(stub.url, headers_command=_printing(tmp_path, body), restart=ONCE)
            async with bench(tmp_path) as b:
                await b.up(entry)
                if not why:
                    seen = json.loads(text(await b.call("web__headers")))
                    assert seen["X-Two"] == "2" and "abcdef" not in str(seen)
                    return
                fault = b.status("web").fault
                assert fault is not None and why in fault.why, fault
                assert "headers_command" in fault.what and not stub.requests

    run(main)


# ---- verdicts


def test_verdicts_survive_and_are_shared(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "eras.json"
    one, two = Eras(path), Eras(path)
    one.remember("a", "legacy")
    two.remember("b", "modern")  # it read the file before the other wrote
    two.remember_sse("a")
    third = Eras(path)
    assert (third.known("a"), third.known("b")) == ("legacy", "modern")
    assert third.knows_sse("a") and not third.knows_sse("b")
    third.forget("a")
    third.forget_sse("a")
    assert Eras(path).known("a") is None and Eras(path).known("b") == "modern"
    assert [name for name in os.listdir(path.parent) if name.startswith(".")] == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"version": 2, "entries": {"a": {"era": "legacy"}}}',
        b'{"version": 1, "entries": [1]}',
        b'{"version": 1, "entries": {"a": {"era": 3}, "b": 1}}',
    ],
)
def test_a_broken_file_of_verdicts_counts_as_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "eras.json"
    path.write_bytes(content)
    eras = Eras(path)
    assert eras.known("a") is None and not eras.knows_sse("b")
    eras.remember("a", "modern")
    assert Eras(path).known("a") == "modern"


def test_verdicts_that_cannot_be_written_are_held(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    eras = Eras(tmp_path / "file" / "eras.json")
    eras.remember("a", "legacy")
    assert eras.known("a") == "legacy"
