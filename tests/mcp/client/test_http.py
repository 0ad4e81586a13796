"""Servers over HTTP: every revision, headers, sessions, streams, and the older transport."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from kage.config.schema import RestartSpec, ServerSpec
from kage.core.messages import Outcome
from kage.core.servers import ServerState
from tests.mcp.client.harness import Bench, bench, run, spec, text
from tests.stubs.http_server import serving
from tests.waiting import until

HANDSHAKE = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
LEGACY = ("--revisions", "2025-06-18")


def web(url: str, name: str = "web", **more: Any) -> ServerSpec:
    """Make the entry of a server behind ``url``."""
    more.setdefault("timeout", 60.0)  # machines are shared
    more.setdefault("transport", "http")
    more.setdefault("restart", RestartSpec(delay=0.05, max_delay=0.2))
    return ServerSpec(name=name, url=url, **more)


@pytest.mark.parametrize("answers", [(), ("--json",)], ids=["events", "json"])
@pytest.mark.parametrize("revision", [*HANDSHAKE[1:], MODERN])
def test_a_tool_answers_in_every_revision(
    tmp_path: Path, revision: str, answers: tuple[str, ...]
) -> None:
    async def main() -> None:
        with serving("--revisions", revision, *answers) as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url))
                result = await b.call("web__echo", {"text": "hi ☃"})
                assert (result.outcome, text(result)) == (Outcome.OK, "hi ☃")
                assert b.status("web").protocol == revision
                assert b.status("web").version == "http 1.0"
            ended = stub.seen(http="DELETE")
            assert len(ended) == (0 if revision == MODERN else 1)  # the session is given back

    run(main)


@pytest.mark.parametrize("revision", [*HANDSHAKE, MODERN])
def test_the_same_tool_answers_over_stdio_in_every_revision(tmp_path: Path, revision: str) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", "--revisions", revision))
            assert b.status("echo").protocol == revision
            assert text(await b.call("echo__echo", {"text": "hi"})) == "hi"

    run(main)


@pytest.mark.parametrize("protocol", ["auto", "legacy", MODERN])
def test_the_protocol_setting_is_kept(tmp_path: Path, protocol: Any) -> None:
    async def main() -> None:
        with serving() as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, protocol=protocol))
                spoken = HANDSHAKE[-1] if protocol == "legacy" else MODERN
                assert b.status("web").protocol == spoken
                assert bool(stub.seen("server/discover")) is (protocol != "legacy")
        with serving(*LEGACY) as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, protocol=protocol))
                if protocol != MODERN:
                    assert b.status("web").protocol == "2025-06-18"
                    return
                fault = b.status("web").fault
                assert fault is not None and MODERN in f"{fault.what} {fault.why}"
                assert not stub.seen("initialize")

    run(main)


def test_headers_reach_the_server_with_every_request(tmp_path: Path) -> None:
    async def main() -> None:
        with serving(*LEGACY) as stub:
            async with bench(tmp_path, environ={"TEAM_TOKEN": "s3cret-token"}) as b:
                headers = {"Authorization": "Bearer ${TEAM_TOKEN}", "X-Team": "docs"}
                await b.up(web(stub.url, headers={**headers, "Content-Type": "text/odd"}))
                seen = json.loads(text(await b.call("web__headers")))
                assert seen["X-Team"] == "docs"
                assert "s3cret" not in str(seen) and "[redacted" in seen["Authorization"]
                await until(lambda: bool(stub.seen(http="GET")), what="the stream is open")
            for request in stub.requests:
                assert request["headers"]["authorization"] == "Bearer s3cret-token"
                assert request["headers"]["x-team"] == "docs"
                assert request["headers"].get("content-type") in (None, "application/json")
            assert {request["method"] for request in stub.requests} == {"GET", "POST", "DELETE"}

    run(main)


def test_ids_on_the_wire_cannot_be_guessed(tmp_path: Path) -> None:
    async def main() -> None:
        with serving() as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url))
                for _ in range(3):
                    await b.call("web__echo", {"text": ""})
            messages = [call["message"] for call in stub.seen("tools/call")]
            assert len({message["id"] for message in messages}) == 3
            assert min(message["id"] for message in messages) > 1_000_000
            tokens = {message["params"]["_meta"]["progressToken"] for message in messages}
            assert len(tokens) == 3

    run(main)


@pytest.mark.parametrize("revisions", [LEGACY, ()], ids=["legacy", "modern"])
def test_a_changed_list_is_fetched_again(tmp_path: Path, revisions: tuple[str, ...]) -> None:
    async def main() -> None:
        with serving(*revisions) as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url))
                await until(lambda: bool(stub.listening), what="somebody listens")
                await b.call("web__mutate")
                await until(b.manager.changed.is_set, what="a new list")
                await b.apply()
                assert "web__new12" in b.tools

    run(main)


def test_progress_arrives_and_keeps_a_call_alive(tmp_path: Path) -> None:
    async def main() -> None:
        with serving() as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, tool_timeout=3.0))
                steps: list[float] = []
                result = await b.call(
                    "web__progress",
                    {"steps": 8, "gap": 0.45},
                    progress=lambda done, total, said: steps.append(done),
                )
                assert (result.outcome, steps[-1]) == (Outcome.OK, 8)

    run(main)


@pytest.mark.parametrize("revisions", [LEGACY, ()], ids=["legacy", "modern"])
def test_a_call_over_its_limit_ends_and_the_connection_stays(
    tmp_path: Path, revisions: tuple[str, ...]
) -> None:
    async def main() -> None:
        with serving(*revisions) as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, tool_timeouts={"slow": 0.3}))
                result = await b.call("web__slow", {"seconds": 3})
                assert result.outcome is Outcome.UNKNOWN and "given up" in text(result)
                assert text(await b.call("web__echo", {"text": "on"})) == "on"
                told = [call["message"]["params"] for call in stub.seen("notifications/cancelled")]
                if revisions:
                    await until(lambda: bool(stub.seen("notifications/cancelled")), what="told")
                    told = [c["message"]["params"] for c in stub.seen("notifications/cancelled")]
                    slow = stub.seen("tools/call")[0]["message"]
                    assert told[0]["requestId"] == slow["id"]
                else:
                    assert not told  # closing the stream says it

    run(main)


def test_an_expired_session_is_replaced(tmp_path: Path) -> None:
    async def main() -> None:
        with serving(*LEGACY) as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url))
                stub.sessions.clear()
                result = await b.call("web__echo", {"text": "lost"})
                assert result.outcome is Outcome.TOOL_ERROR
                assert "session had expired" in text(result) and "did not run" in text(result)
                await until(lambda: len(stub.seen("initialize")) == 2, what="a new session")
                await b.state("web", ServerState.CONNECTED)
                await b.apply()
                assert text(await b.call("web__echo", {"text": "again"})) == "again"
                sent = [call["message"]["params"] for call in stub.seen("tools/call")]
                assert [params["arguments"]["text"] for params in sent] == ["lost", "again"]
                assert "connecting" in b.states("web")[1:]

    run(main)


def test_a_stream_that_breaks_is_opened_again_and_not_too_often(tmp_path: Path) -> None:
    async def main() -> None:
        with serving(*LEGACY, "--fault", "GET=storm") as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url))
                begin = time.monotonic()
                await until(lambda: len(stub.seen(http="GET")) >= 5, what="it comes back")
                for number in range(20):
                    assert text(await b.call("web__echo", {"text": number})) == str(number)
                    await asyncio.sleep(0.02)
                assert len(stub.seen(http="GET")) <= 12 + time.monotonic() - begin
                assert b.states("web") == ["connecting", "connected"]

    run(main)


@pytest.mark.parametrize("how", ["405", "404", "html", "reset"])
def test_a_server_without_a_stream_is_no_fault(tmp_path: Path, how: str) -> None:
    async def main() -> None:
        with serving(*LEGACY, "--fault", f"GET={how}") as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url))
                await until(lambda: bool(stub.seen(http="GET")), what="it was asked")
                assert text(await b.call("web__echo", {"text": "on"})) == "on"
                assert b.status("web").fault is None

    run(main)


# ---- the older transport


async def _talks(b: Bench, entry: ServerSpec) -> None:
    await b.up(entry)
    assert b.status("web").state is ServerState.CONNECTED, b.status("web").fault
    assert text(await b.call("web__echo", {"text": "old"})) == "old"
    assert json.loads(text(await b.call("web__headers")))["X-Team"] == "docs"


@pytest.mark.parametrize("status", [400, 404, 405])
def test_a_server_of_the_older_transport_is_found_and_remembered(
    tmp_path: Path, status: int
) -> None:
    async def main() -> None:
        with serving("--old", "--old-status", status) as stub:
            entry = web(stub.url, headers={"X-Team": "docs"})
            async with bench(tmp_path) as b:
                await _talks(b, entry)
                refused = len([seen for seen in stub.requests if seen["path"] == "/mcp"])
                await b.manager.restart("web")
                again = [seen for seen in stub.requests if seen["path"] == "/mcp"][refused:]
                assert [seen["method"] for seen in again] == ["GET"]
            assert all(seen["headers"]["x-team"] == "docs" for seen in stub.requests)

    run(main)


def test_the_older_transport_can_be_asked_for(tmp_path: Path) -> None:
    async def main() -> None:
        with serving("--old") as stub:
            async with bench(tmp_path) as b:
                await _talks(b, web(stub.url, transport="sse", headers={"X-Team": "docs"}))
                assert {seen["path"] for seen in stub.requests if seen["method"] == "POST"} != {
                    "/mcp"
                }

    run(main)


def test_without_the_fallback_the_reason_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        with serving("--old") as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, sse_fallback=False))
                fault = b.status("web").fault
                assert b.status("web").state is ServerState.FAILED
                assert fault is not None and "405" in fault.why and "sse_fallback" in fault.fix
                assert not stub.seen(http="GET")

    run(main)


def test_an_older_server_comes_back_when_its_stream_ends(tmp_path: Path) -> None:
    async def main() -> None:
        with serving("--old") as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, transport="sse"))
                stub.drop_streams()
                await until(lambda: len(stub.seen("initialize")) == 2, what="it came back")
                await b.state("web", ServerState.CONNECTED)
                await b.apply()
                assert text(await b.call("web__echo", {"text": "back"})) == "back"

    run(main)


@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.1:9/mcp/messages", "//evil.invalid/x", "file:///etc/passwd"]
)
def test_an_endpoint_of_another_origin_is_refused(tmp_path: Path, endpoint: str) -> None:
    async def main() -> None:
        with serving("--old", "--endpoint", endpoint) as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, transport="sse", restart=RestartSpec(enabled=False)))
                fault = b.status("web").fault
                assert fault is not None and "another origin" in fault.why
                assert not stub.seen(http="POST")

    run(main)


def test_marked_arguments_travel_as_headers_too(tmp_path: Path) -> None:
    async def main() -> None:
        with serving("--revisions", MODERN) as stub:

            def marked(kind: str) -> dict[str, Any]:
                return {"region": {"type": kind, "x-mcp-header": "Region"}, "n": {"type": "string"}}

            stub.tool("good", lambda arguments, call: "ok", properties=marked("string"))
            stub.tool("bad", lambda arguments, call: "ok", properties=marked("object"))
            async with bench(tmp_path) as b:
                await b.up(web(stub.url))
                assert "web__good" in b.tools and "web__bad" not in b.tools
                assert any("x-mcp-header" in reason for reason in b.status("web").dropped)
                await b.call("web__good", {"region": "eu-west", "n": "1"})
                assert stub.seen("tools/call")[-1]["headers"]["mcp-param-region"] == "eu-west"

    run(main)


def test_a_flood_of_notices_stops_neither_its_call_nor_others(tmp_path: Path) -> None:
    async def main() -> None:
        with serving() as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url))
                steps: list[float] = []
                flood = asyncio.create_task(
                    b.call(
                        "web__flood",
                        {"count": 3000},
                        progress=lambda done, total, said: steps.append(done),
                    )
                )
                for number in range(5):
                    assert text(await b.call("web__echo", {"text": str(number)})) == str(number)
                assert text(await flood) == "flooded"
                assert steps[-1] == 2999 and len(steps) < 1500  # thinned, the last one kept

    run(main)
