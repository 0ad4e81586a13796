"""Every message has the shape its revision wants; the SDK's own types are the judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import methods
from mcp_types.jsonrpc import jsonrpc_message_adapter

from tests.mcp.server.peer import ENVELOPE, HANDSHAKE, Kept, Peer, text_of

ALL = (*HANDSHAKE, "2026-07-28")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("root")


@pytest.fixture
def peer(root: Path) -> Iterator[Peer]:
    with Peer(stub=True, root=root, instructions="Use it well.") as found:
        yield found


@pytest.fixture(scope="module")
def kept() -> Iterator[Kept]:
    made = Kept()
    yield made
    made.close()


@pytest.fixture
def stranger(kept: Kept, root: Path) -> Iterator[Peer]:
    """Talk to one process nobody greets."""
    with kept.lend(lambda: Peer(stub=True, root=root)) as found:
        yield found


def params(revision: str, **rest: Any) -> dict[str, Any]:
    return {"_meta": ENVELOPE, **rest} if revision == "2026-07-28" else rest


def open_(peer: Peer, revision: str) -> None:
    if revision != "2026-07-28":
        assert peer.hello(revision)["protocolVersion"] == revision


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_the_handshake_answers_each_revision_in_its_own_shape(peer: Peer, revision: str) -> None:
    result = peer.hello(revision)
    methods.validate_server_result("initialize", revision, result)
    assert result["serverInfo"] == {"name": "kage", "version": "1.2.3"}
    assert result["capabilities"] == {"tools": {}}
    assert result["instructions"] == "Use it well."


@pytest.mark.parametrize("offered", ["2023-01-01", "2026-07-28", "draft", ""])
def test_an_unknown_version_is_answered_with_the_latest(peer: Peer, offered: str) -> None:
    assert peer.hello(offered)["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("revision", ALL)
def test_the_list_of_tools_is_valid_and_stable_in_each_revision(peer: Peer, revision: str) -> None:
    open_(peer, revision)
    result = peer.result("tools/list", params(revision))
    methods.validate_server_result("tools/list", revision, result)
    assert peer.result("tools/list", params(revision)) == result
    tool = result["tools"][0]
    assert tool["name"] == "echo"
    assert ("annotations" in tool) == (revision >= "2025-03-26")
    assert ("title" in tool) == (revision >= "2025-06-18")
    assert ("ttlMs" in result) == (revision == "2026-07-28")


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("tool", ["echo", "media", "fail"])
def test_results_are_valid_in_each_revision(peer: Peer, revision: str, tool: str) -> None:
    open_(peer, revision)
    arguments = {"echo": {"text": "hi"}, "media": {}, "fail": {"how": "tool"}}[tool]
    answer = peer.ask("tools/call", params(revision, name=tool, arguments=arguments))
    jsonrpc_message_adapter.validate_python(answer)
    result = answer["result"]
    methods.validate_server_result("tools/call", revision, result)
    assert result["isError"] == (tool == "fail")
    kinds = [part["type"] for part in result["content"]]
    if tool == "media":
        assert ("audio" in kinds) == (revision >= "2025-03-26")
        assert ("resource_link" in kinds) == (revision >= "2025-06-18")
        assert ("structuredContent" in result) == (revision >= "2025-06-18")
        assert len(kinds) == 6
    modern = revision == "2026-07-28"
    assert (result.get("resultType") == "complete") == modern
    assert ("_meta" in result) == modern


def test_discovery_says_what_the_modern_era_needs(peer: Peer) -> None:
    result = peer.modern("server/discover")["result"]
    methods.validate_server_result("server/discover", "2026-07-28", result)
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "kage"


def test_both_eras_are_served_on_one_connection(peer: Peer) -> None:
    peer.hello("2025-06-18")
    assert peer.modern("tools/call", name="echo", arguments={"text": "a"})["result"]["resultType"]
    assert "resultType" not in peer.call("echo", text="b")


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({"io.modelcontextprotocol/protocolVersion": "2026-07-28"}, -32602),
        ({**ENVELOPE, "io.modelcontextprotocol/protocolVersion": 7}, -32602),
        ({**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": []}, -32602),
        ({**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}, -32022),
        ({**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2025-11-25"}, -32022),
    ],
)
@pytest.mark.parametrize("method", ["tools/list", "server/discover", "tools/call"])
def test_a_bad_envelope_is_refused(stranger: Peer, meta: Any, code: int, method: str) -> None:
    error = stranger.error(method, {"_meta": meta, "name": "echo"})
    assert error["code"] == code
    if code == -32022:
        assert error["data"]["supported"] == ["2026-07-28"]
        requested = meta["io.modelcontextprotocol/protocolVersion"]
        assert error["data"]["requested"] == requested


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "server/discover"])
def test_a_request_before_any_greeting_says_what_is_missing(stranger: Peer, method: str) -> None:
    error = stranger.error(method, {"name": "echo", "arguments": {"text": "x"}})
    assert error["code"] == -32602
    assert "initialize" in error["message"] and "2026-07-28" in error["message"]


@pytest.mark.parametrize(
    "method",
    [
        *("logging/setLevel", "resources/list", "prompts/list", "no/such", "tools/nothing"),
        *("completion/complete", "subscriptions/listen", "roots/list", ""),
    ],
)
def test_only_unknown_methods_are_unknown(peer: Peer, method: str) -> None:
    assert peer.error(method)["code"] == -32601
    assert peer.modern(method)["error"]["code"] == -32601
    peer.hello()
    assert peer.error(method)["code"] == -32601


def test_ping_belongs_to_the_handshake_revisions(peer: Peer) -> None:
    assert peer.result("ping") == {}
    peer.hello("2024-11-05")
    assert peer.result("ping") == {}
    assert peer.modern("ping")["error"]["code"] == -32601


def test_a_greeting_is_unknown_where_requests_stand_for_themselves(peer: Peer) -> None:
    assert peer.modern("initialize")["error"]["code"] == -32601
    assert peer.modern("initialize", capabilities={})["error"]["code"] == -32601
    # a client that names a version of the handshake wants it, whatever else it says
    greeting = {"protocolVersion": "2025-06-18", "capabilities": {}, "_meta": ENVELOPE}
    assert peer.result("initialize", greeting)["protocolVersion"] == "2025-06-18"


def test_discovery_is_unknown_to_a_client_that_shook_hands(peer: Peer) -> None:
    peer.hello("2025-11-25")
    assert peer.error("server/discover")["code"] == -32601


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"protocolVersion": 5},
        {"protocolVersion": "2025-06-18", "capabilities": []},
        {"protocolVersion": "2025-06-18", "clientInfo": "me"},
    ],
)
def test_a_greeting_with_wrong_parameters_is_refused(peer: Peer, bad: Any) -> None:
    assert peer.error("initialize", bad)["code"] == -32602
    assert peer.hello()["protocolVersion"] == "2025-06-18"


def test_a_cursor_nobody_gave_is_refused(peer: Peer) -> None:
    peer.hello()
    assert peer.error("tools/list", {"cursor": "abc"})["code"] == -32602


def test_an_unknown_tool_is_a_protocol_error_and_bad_arguments_are_a_result(peer: Peer) -> None:
    peer.hello()
    error = peer.error("tools/call", {"name": "nothing", "arguments": {}})
    assert error["code"] == -32602 and "nothing" in error["message"] and "echo" in error["message"]
    assert peer.error("tools/call", {"arguments": {}})["code"] == -32602
    assert peer.error("tools/call", {"name": "echo", "arguments": [1]})["code"] == -32602
    for arguments in ({}, {"text": 5}, {"text": "a", "more": 1}, {"text": None}):
        result = peer.result("tools/call", {"name": "echo", "arguments": arguments})
        assert result["isError"] and "Bad arguments for echo" in text_of(result)
