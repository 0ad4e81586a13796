"""What asks, asks through the calling client, in both eras; without an answer nothing runs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import methods

from tests.mcp.server.peer import ENVELOPE, Peer, text_of

FORMS = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
CALL: dict[str, Any] = {"name": "touch", "arguments": {"path": "mark"}}


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    with Peer(stub=True, root=tmp_path, confirm=True, ask=["echo"], deny=["media"]) as found:
        yield found


def question(peer: Peer, revision: str) -> dict[str, Any]:
    message = peer.receive()
    assert message["method"] == "elicitation/create"
    methods.parse_server_request(message["method"], revision, message["params"])
    return message


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_the_person_is_asked_before_a_write_runs(peer: Peer, tmp_path: Path, revision: str) -> None:
    peer.hello(revision, elicitation={})
    call = peer.post("tools/call", CALL)
    asked = question(peer, revision)
    assert "touch" in asked["params"]["message"] and "mark" in asked["params"]["message"]
    assert not (tmp_path / "mark").exists()
    peer.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {}}})
    answer = peer.receive()
    assert answer["id"] == call and answer["result"]["isError"] is False
    assert (tmp_path / "mark").read_text() == "x"


@pytest.mark.parametrize(
    "reply",
    [
        {"result": {"action": "decline"}},
        {"result": {"action": "cancel"}},
        {"result": {"action": "perhaps"}},
        {"result": {}},
        {"result": "accept"},
        {"result": ["accept"]},
        {"error": {"code": -32601, "message": "no"}},
    ],
)
def test_anything_but_a_yes_refuses(peer: Peer, tmp_path: Path, reply: dict[str, Any]) -> None:
    peer.hello("2025-06-18", elicitation={})
    peer.post("tools/call", CALL)
    asked = question(peer, "2025-06-18")
    peer.send({"jsonrpc": "2.0", "id": asked["id"], **reply})
    result = peer.receive()["result"]
    assert result["isError"] and "--confirm" in text_of(result)
    assert not (tmp_path / "mark").exists()


def test_an_answer_with_another_id_decides_nothing(peer: Peer, tmp_path: Path) -> None:
    peer.hello("2025-06-18", elicitation={})
    peer.post("tools/call", CALL)
    asked = question(peer, "2025-06-18")
    for id_ in (asked["id"] + "x", 1, "kage-1", ""):
        peer.send({"jsonrpc": "2.0", "id": id_, "result": {"action": "accept"}})
    assert peer.result("ping") == {}
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("revision", "capabilities"),
    [
        ("2024-11-05", {"elicitation": {}}),
        ("2025-03-26", {"elicitation": {}}),
        ("2025-06-18", {}),
        ("2025-11-25", {"elicitation": {"url": {}}}),
        ("2025-11-25", {"elicitation": None}),
    ],
)
def test_a_client_that_cannot_ask_gets_a_refusal_that_names_the_rule(
    peer: Peer, tmp_path: Path, revision: str, capabilities: dict[str, Any]
) -> None:
    peer.hello(revision, **capabilities)
    result = peer.call("touch", path="mark")
    assert result["isError"] and "--confirm" in text_of(result)
    assert "echo(*)" in text_of(peer.call("echo", text="x"))
    assert not (tmp_path / "mark").exists()


def test_a_deny_rule_holds_without_a_question(peer: Peer) -> None:
    peer.hello("2025-06-18", elicitation={})
    result = peer.call("media")
    assert result["isError"] and "media(*)" in text_of(result)


def test_cancelling_the_call_takes_the_question_back(peer: Peer, tmp_path: Path) -> None:
    peer.hello("2025-06-18", elicitation={})
    call = peer.post("tools/call", CALL)
    asked = question(peer, "2025-06-18")
    peer.send(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}}
    )
    back = peer.receive()
    assert back["method"] == "notifications/cancelled"
    assert back["params"]["requestId"] == asked["id"]
    peer.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}})
    assert peer.result("ping") == {}
    assert not (tmp_path / "mark").exists()


def test_a_question_nobody_can_answer_any_more_refuses(peer: Peer, tmp_path: Path) -> None:
    peer.hello("2025-06-18", elicitation={})
    peer.post("tools/call", CALL)
    question(peer, "2025-06-18")
    assert peer.finish() == 0
    assert "nobody answered" in text_of(peer.receive()["result"])
    assert not (tmp_path / "mark").exists()


def modern(peer: Peer, call: dict[str, Any] | None = None, **extra: Any) -> dict[str, Any]:
    return peer.ask("tools/call", {**(call or CALL), "_meta": {**ENVELOPE, **FORMS}, **extra})


def asked_state(peer: Peer, call: dict[str, Any] | None = None) -> str:
    result = modern(peer, call)["result"]
    assert result["resultType"] == "input_required"
    methods.validate_server_result("tools/call", "2026-07-28", result)
    assert result["inputRequests"]["confirm"]["method"] == "elicitation/create"
    state: str = result["requestState"]
    return state


def answer(action: str) -> dict[str, Any]:
    return {"confirm": {"action": action}}


def test_the_modern_era_asks_by_a_result_and_runs_on_the_second_call(
    peer: Peer, tmp_path: Path
) -> None:
    state = asked_state(peer)
    assert not (tmp_path / "mark").exists()
    result = modern(peer, requestState=state, inputResponses=answer("accept"))["result"]
    methods.validate_server_result("tools/call", "2026-07-28", result)
    assert result["isError"] is False
    assert (tmp_path / "mark").read_text() == "x"


def test_a_yes_is_good_for_one_call(peer: Peer, tmp_path: Path) -> None:
    state = asked_state(peer)
    modern(peer, requestState=state, inputResponses=answer("accept"))
    again = modern(peer, requestState=state, inputResponses=answer("accept"))
    assert again["error"]["code"] == -32602
    assert (tmp_path / "mark").read_text() == "x"


def test_a_no_refuses(peer: Peer, tmp_path: Path) -> None:
    state = asked_state(peer)
    result = modern(peer, requestState=state, inputResponses=answer("decline"))["result"]
    assert result["isError"] and "did not agree" in text_of(result)
    assert not (tmp_path / "mark").exists()


def test_a_yes_for_one_call_does_not_run_another(peer: Peer, tmp_path: Path) -> None:
    state = asked_state(peer)
    other = copy.deepcopy(CALL)
    other["arguments"]["path"] = "other"
    error = modern(peer, other, requestState=state, inputResponses=answer("accept"))["error"]
    assert error["code"] == -32602
    echo = {"name": "echo", "arguments": {"text": "mark"}}
    assert "error" in modern(peer, echo, requestState=state, inputResponses=answer("accept"))
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("change", ["", "x", "AAAA", 5, {}, ["x"], "é", "cut", "flip"])
def test_a_state_that_was_tampered_with_is_refused(
    peer: Peer, tmp_path: Path, change: object
) -> None:
    state = asked_state(peer)
    if change == "cut":
        change = state[:-8]
    elif change == "flip":
        change = ("B" if state[0] == "A" else "A") + state[1:]
    reply = modern(peer, requestState=change, inputResponses=answer("accept"))
    assert reply["error"]["code"] == -32602
    assert not (tmp_path / "mark").exists()


def test_an_answer_without_its_state_is_asked_again(peer: Peer, tmp_path: Path) -> None:
    result = modern(peer, inputResponses=answer("accept"))["result"]
    assert result["resultType"] == "input_required"
    state = asked_state(peer)
    for responses in ({}, {"other": {"action": "accept"}}, {"confirm": "accept"}):
        again = modern(peer, requestState=state, inputResponses=responses)["result"]
        assert again["resultType"] == "input_required"
    assert modern(peer, requestState=state, inputResponses=[])["error"]["code"] == -32602
    assert not (tmp_path / "mark").exists()


def test_a_modern_client_without_forms_gets_a_refusal(peer: Peer) -> None:
    result = peer.modern("tools/call", **CALL)["result"]
    assert result["isError"] and "--confirm" in text_of(result)
    assert result["resultType"] == "complete"


def test_the_question_shows_control_characters_and_the_length_of_what_is_cut(peer: Peer) -> None:
    peer.hello("2025-06-18", elicitation={})
    text = "\x1b[2J\u202e" + "y" * 5000
    peer.post("tools/call", {"name": "echo", "arguments": {"text": text}})
    shown = question(peer, "2025-06-18")["params"]["message"]
    assert "\x1b" not in shown and "\u202e" not in shown and "<U+202E>" in shown
    assert f"{len(text)} characters in all" in shown


def test_the_whole_command_is_shown_before_it_may_run(tmp_path: Path) -> None:
    command = f"echo {'x' * 50_000}; touch mark"
    with Peer(root=tmp_path, confirm=True) as peer:
        peer.hello("2025-06-18", elicitation={})
        peer.post("tools/call", {"name": "bash", "arguments": {"command": command}})
        asked = question(peer, "2025-06-18")
        assert asked["params"]["message"].endswith("; touch mark")
        peer.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}})
        assert peer.receive()["result"]["isError"]
        peer.post("tools/call", {"name": "bash", "arguments": {"command": "x" * 30_000_000}})
        asked = question(peer, "2025-06-18")
        message = asked["params"]["message"]
        assert len(message) < 200_000 and "30000000 characters in all" in message
