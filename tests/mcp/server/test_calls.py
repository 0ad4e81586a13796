"""Calls: failures are results, cancelling works, nothing but protocol reaches stdout."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mcp.server.peer import Peer, text_of
from tests.waiting import wait_for


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    with Peer(stub=True, root=tmp_path) as found:
        found.hello()
        yield found


def test_a_tools_failure_is_a_result_with_its_text(peer: Peer) -> None:
    result = peer.call("fail", how="tool")
    assert result["isError"] is True
    assert text_of(result) == "It is not there: nobody put it there. Put it there"
    assert peer.call("fail", how="result")["isError"] is True


def test_an_unforeseen_failure_shows_no_traceback_and_serving_goes_on(peer: Peer) -> None:
    result = peer.call("fail", how="crash")
    assert result["isError"] is True
    assert "Traceback" not in text_of(result) and "ZeroDivision" not in text_of(result)
    assert "\x1b" not in text_of(result)
    assert text_of(peer.call("echo", text="still here")) == "still here"
    assert peer.finish() == 0
    assert "\x1b" not in peer.stderr()


def test_calls_run_side_by_side(peer: Peer) -> None:
    slow = peer.post("tools/call", {"name": "wait", "arguments": {"seconds": 0.5}})
    assert text_of(peer.call("echo", text="first")) == "first"
    assert peer.receive()["id"] == slow


def test_a_cancelled_call_stops_and_gets_no_answer(peer: Peer, tmp_path: Path) -> None:
    slow = peer.post("tools/call", {"name": "wait", "arguments": {"seconds": 60}}, id_="slow")
    assert text_of(peer.call("echo", text="running")) == "running"
    peer.send(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow}}
    )
    wait_for((tmp_path / "cancelled").exists)
    assert text_of(peer.call("echo", text="next")) == "next"
    assert peer.finish() == 0


@pytest.mark.parametrize(
    "params", [{}, {"requestId": None}, {"requestId": [1]}, {"requestId": 7}, 5]
)
def test_a_cancellation_of_nothing_is_ignored(peer: Peer, params: object) -> None:
    peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    assert text_of(peer.call("echo", text="x")) == "x"


def test_a_number_and_a_text_are_different_ids(peer: Peer, tmp_path: Path) -> None:
    peer.post("tools/call", {"name": "wait", "arguments": {"seconds": 0.3}}, id_="5")
    peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
    assert peer.receive()["id"] == "5"


def test_an_id_that_is_running_cannot_be_used_again(peer: Peer) -> None:
    peer.post("tools/call", {"name": "wait", "arguments": {"seconds": 0.5}}, id_=1)
    peer.post("tools/call", {"name": "echo", "arguments": {"text": "x"}}, id_=1)
    assert peer.receive()["error"]["code"] == -32600
    assert text_of(peer.receive()["result"]) == "waited"


def test_progress_rises_and_ends_with_the_answer(peer: Peer) -> None:
    params = {"name": "progress", "arguments": {}, "_meta": {"progressToken": "tok"}}
    id_ = peer.post("tools/call", params)
    seen = []
    while (message := peer.receive()).get("id") != id_:
        assert message["method"] == "notifications/progress"
        assert message["params"]["progressToken"] == "tok"
        seen.append(message["params"]["progress"])
    assert len(seen) >= 3 and seen == sorted(set(seen))
    assert text_of(peer.call("echo", text="quiet")) == "quiet"


def test_without_a_token_there_is_no_progress(peer: Peer) -> None:
    assert text_of(peer.call("progress")) == "done"


def test_stdout_carries_nothing_but_protocol(peer: Peer) -> None:
    result = peer.call("noisy")
    assert text_of(result) == "\ufffd half, \u2028 and \x1b escape"
    assert peer.finish() == 0
    assert peer.line() == b""
    stray = peer.stderr()
    assert "stray print" in stray and "stray write" in stray and "stray child" in stray


def test_tools_get_the_root_and_the_agents_mark(peer: Peer, tmp_path: Path) -> None:
    shown = text_of(peer.call("place"))
    assert shown.startswith(f"{tmp_path.resolve()}|")
    assert "'KAGE_AGENT': '1'" in shown


def test_a_result_of_many_megabytes_arrives_whole(peer: Peer) -> None:
    assert len(text_of(peer.call("big", size=20_000_000))) == 20_000_000


def test_a_client_that_reads_late_gets_everything_in_order(peer: Peer) -> None:
    ids = [
        peer.post("tools/call", {"name": "big", "arguments": {"size": 300_000}}) for _ in range(40)
    ]
    assert [peer.receive()["id"] for _ in ids] == ids


def test_many_calls_at_once_are_all_answered(peer: Peer) -> None:
    ids = {
        peer.post("tools/call", {"name": "echo", "arguments": {"text": "x"}}) for _ in range(3000)
    }
    assert {peer.receive()["id"] for _ in ids} == ids


def test_more_calls_than_can_run_are_told_to_wait(peer: Peer) -> None:
    for _ in range(1000):
        peer.post("tools/call", {"name": "wait", "arguments": {"seconds": 60}})
    result = peer.call("echo", text="x")
    assert result["isError"] and "running already" in text_of(result)


def test_requests_running_at_the_end_of_input_are_answered(peer: Peer) -> None:
    id_ = peer.post("tools/call", {"name": "wait", "arguments": {"seconds": 1}})
    assert peer.finish() == 0
    answer = peer.receive()
    assert answer["id"] == id_ and text_of(answer["result"]) == "waited"


def test_a_call_that_outlasts_the_end_of_input_is_stopped_and_answered(
    peer: Peer, tmp_path: Path
) -> None:
    id_ = peer.post("tools/call", {"name": "wait", "arguments": {"seconds": 60}})
    assert peer.finish() == 0
    answer = peer.receive()
    assert answer["id"] == id_ and answer["result"]["isError"]
    assert (tmp_path / "cancelled").exists()


def test_a_last_line_without_an_end_counts(peer: Peer) -> None:
    peer.raw(b'{"jsonrpc":"2.0","id":"last","method":"ping"}')
    assert peer.finish() == 0
    assert peer.receive()["id"] == "last"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_good_order(peer: Peer, tmp_path: Path, number: int) -> None:
    id_ = peer.post("tools/call", {"name": "wait", "arguments": {"seconds": 60}})
    assert text_of(peer.call("echo", text="up")) == "up"
    peer.process.send_signal(number)
    answer = peer.receive()
    assert answer["id"] == id_ and answer["result"]["isError"]
    assert peer.process.wait(60) == 0
    assert (tmp_path / "cancelled").exists()
    assert "Traceback" not in peer.stderr()


def test_a_client_that_stopped_reading_ends_it_quietly(peer: Peer) -> None:
    assert peer.process.stdout is not None
    peer.process.stdout.close()
    peer.post("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    assert peer.process.wait(60) == 0
    assert peer.stderr() == ""


def test_a_tool_that_cannot_be_cancelled_does_not_hold_the_end_up(peer: Peer) -> None:
    id_ = peer.post("tools/call", {"name": "stuck", "arguments": {}})
    assert text_of(peer.call("echo", text="up")) == "up"
    peer.process.send_signal(signal.SIGTERM)
    assert peer.receive()["id"] == id_
    assert peer.process.wait(15) == 0


def test_a_command_that_runs_on_is_heard_of(tmp_path: Path) -> None:
    line = "for word in one two three; do echo $word; sleep 0.3; done"
    params = {"name": "bash", "arguments": {"command": line}, "_meta": {"progressToken": 7}}
    with Peer(root=tmp_path) as peer:
        peer.hello()
        id_ = peer.post("tools/call", params)
        seen = []
        while (message := peer.receive()).get("id") != id_:
            assert message["params"]["progressToken"] == 7
            seen.append(message["params"])
        assert text_of(message["result"]) == "one\ntwo\nthree"
        assert [params["message"] for params in seen] == ["one", "two", "three"]
        assert [params["progress"] for params in seen] == sorted(p["progress"] for p in seen)
        peer.hello("2024-11-05")
        id_ = peer.post("tools/call", params)
        assert "message" not in peer.receive()["params"]


def test_a_silent_call_is_heard_of_now_and_then(peer: Peer) -> None:
    params = {"name": "wait", "arguments": {"seconds": 6}, "_meta": {"progressToken": "t"}}
    id_ = peer.post("tools/call", params)
    beat = peer.receive()
    assert beat["params"]["progress"] >= 5 and "running for 5 s" in beat["params"]["message"]
    assert peer.receive()["id"] == id_
