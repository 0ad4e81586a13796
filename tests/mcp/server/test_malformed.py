"""Whatever comes in, what goes out is JSON-RPC, and serving goes on."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp_types.jsonrpc import JSONRPCError, jsonrpc_message_adapter

from tests.mcp.server.peer import Kept, Peer, text_of


@pytest.fixture(scope="module")
def kept() -> Iterator[Kept]:
    made = Kept()
    yield made
    made.close()


@pytest.fixture
def peer(kept: Kept, tmp_path: Path) -> Iterator[Peer]:
    """Serve by one process for many tests: going on is what they prove."""

    def start() -> Peer:
        peer = Peer(stub=True, root=tmp_path)
        peer.hello()
        return peer

    with kept.lend(start) as found:
        yield found


@pytest.mark.parametrize(
    ("line", "code", "id_"),
    [
        (b"{", -32700, None),
        (b"hello", -32700, None),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":{"a":Infinity}}', -32700, 3),
        (b'{"jsonrpc":"2.0","id":"x","method":"ping","params":', -32700, "x"),
        (b'{"jsonrpc":"2.0","id":4,"method":"p\xffing"}', -32700, 4),
        (b"\xff\xfe", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b'{"jsonrpc":"2.0","id":5,"x":' + b"[" * 100_000, -32700, 5),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":99999999999999999999999,"method":"ping"}', -32600, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b"5", -32600, None),
        (b"null", -32600, None),
        (b'"ping"', -32600, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc":"2.0","id":6}', -32600, 6),
        (b'{"id":7,"method":"ping"}', -32600, 7),
        (b'{"jsonrpc":"1.0","id":8,"method":"ping"}', -32600, 8),
        (b'{"jsonrpc":"2.0","id":9,"method":5}', -32600, 9),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":10,"method":"tools/list","params":[]}', -32602, 10),
        (b'{"jsonrpc":"2.0","id":11,"method":"tools/list","params":"x"}', -32602, 11),
        (b'{"jsonrpc":"2.0","id":12,"method":"initialize","params":7}', -32602, 12),
    ],
)
def test_a_malformed_line_is_answered_and_survived(
    peer: Peer, line: bytes, code: int, id_: object
) -> None:
    peer.raw(line + b"\n")
    answer = peer.receive()
    JSONRPCError.model_validate(answer)
    assert (answer["error"]["code"], answer["id"]) == (code, id_)
    assert text_of(peer.call("echo", text="on")) == "on"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"   ",
        b"\r",
        b'{"jsonrpc":"2.0","method":"notifications/whatever","params":3}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":"kage-1","error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":[],"result":5}',
    ],
)
def test_what_wants_no_answer_gets_none(peer: Peer, line: bytes) -> None:
    peer.raw(line + b"\n")
    assert text_of(peer.call("echo", text="on")) == "on"


def test_windows_line_ends_and_null_params_are_accepted(peer: Peer) -> None:
    peer.raw(b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}\r\n')
    assert "tools" in peer.receive()["result"]


def test_half_a_surrogate_pair_is_refused_as_an_argument(peer: Peer) -> None:
    peer.raw(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
        b'"params":{"name":"echo","arguments":{"text":"\\ud800"}}}\n'
    )
    assert peer.receive()["result"]["isError"]
    peer.raw(
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/call",'
        b'"params":{"name":"\\udfff","arguments":{"\\ud800":1}}}\n'
    )
    assert peer.receive()["error"]["code"] == -32602


def test_a_line_beyond_the_limit_costs_only_itself(peer: Peer) -> None:
    peer.raw(b'{"jsonrpc":"2.0","id":77,"method":"tools/call","params":')
    peer.raw(b'{"name":"echo","arguments":{"text":"')
    for _ in range(65):
        peer.raw(b"x" * (1 << 20))
    answer = peer.receive()
    assert answer["id"] == 77 and answer["error"]["code"] == -32600
    for _ in range(10):
        peer.raw(b"y" * (1 << 20))
    peer.raw(b'"}}}\n')
    assert text_of(peer.call("echo", text="on")) == "on"


def test_a_large_argument_below_the_limit_comes_back_whole(peer: Peer) -> None:
    text = "é" * 5_000_000
    id_ = peer.post("tools/call", {"name": "echo", "arguments": {"text": text}})
    answer = peer.receive(40)
    assert answer["id"] == id_ and text_of(answer["result"]) == text


def test_messages_split_at_any_byte_are_put_together(peer: Peer) -> None:
    data = b"".join(
        json.dumps({"jsonrpc": "2.0", "id": n, "method": "ping"}).encode() + b"\n"
        for n in range(30)
    )
    for start in range(0, len(data), 7):
        peer.raw(data[start : start + 7])
    assert [peer.receive()["id"] for _ in range(30)] == list(range(30))


def test_messages_can_come_from_a_file(tmp_path: Path) -> None:
    source = tmp_path / "in"
    sink = tmp_path / "out"
    call = {"name": "echo", "arguments": {"text": "from a file"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "x"}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    source.write_text("\n".join(map(json.dumps, lines)))
    options = json.dumps({"stub": True, "root": str(tmp_path)})
    with source.open() as stdin, sink.open("w") as stdout:
        subprocess.run(
            [sys.executable, "-m", "tests.mcp.server.launcher", options],
            stdin=stdin,
            stdout=stdout,
            check=True,
            timeout=90,
        )
    answers = [json.loads(line) for line in sink.read_text().splitlines()]
    assert text_of(answers[1]["result"]) == "from a file"


def odd_value(dice: random.Random, depth: int = 0) -> Any:
    kinds: list[Any] = [
        *(None, True, False, 0, -1, 2**70, 1.5, float("nan"), float("inf"), "", "x", "\ud800"),
        *("2.0", "ping", "echo", "text", "\u202e\n\0", "9" * 40),
    ]
    if depth < 3 and dice.random() < 0.4:
        size = dice.randrange(4)
        if dice.random() < 0.5:
            return [odd_value(dice, depth + 1) for _ in range(size)]
        return {str(odd_value(dice, 3)): odd_value(dice, depth + 1) for _ in range(size)}
    return dice.choice(kinds)


def odd_line(dice: random.Random) -> bytes:
    if dice.random() < 0.15:
        return dice.randbytes(dice.randrange(40)).replace(b"\n", b"")
    if dice.random() < 0.1:
        return json.dumps(odd_value(dice)).encode()

    def some(*values: Any) -> Any:
        return dice.choice(values) if dice.random() < 0.8 else odd_value(dice)

    methods = ("initialize", "ping", "tools/list", "tools/call", "server/discover")
    version = some("2026-07-28", "2025-06-18", "2024-11-05")
    params = {
        "name": some("echo", "fail", "media", "touch"),
        "arguments": some({"text": some("hi")}, {}, {"how": "crash"}, {"path": "a"}),
        "_meta": some(
            {},
            {"progressToken": odd_value(dice)},
            {
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": some({}, {"elicitation": {}}),
            },
        ),
        "protocolVersion": version,
        **{key: odd_value(dice) for key in ("cursor", "requestId", "requestState", "capabilities")},
    }
    for key in list(params):
        if dice.random() < 0.3:
            del params[key]
    message = {
        "jsonrpc": some("2.0"),
        "id": some(dice.randrange(1000), f"id{dice.random()}"),
        "method": some(*methods, "notifications/cancelled"),
        "params": some(params),
        **({"result": odd_value(dice)} if dice.random() < 0.1 else {}),
        **({"error": odd_value(dice)} if dice.random() < 0.1 else {}),
    }
    for key in list(message):
        if dice.random() < 0.07:
            del message[key]
    line = json.dumps(message).encode()
    return line[: dice.randrange(len(line))] if dice.random() < 0.1 else line


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(min_value=0, max_value=2**32))
def test_two_hundred_odd_lines_leave_only_json_rpc_behind(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    dice = random.Random(seed)
    lines = [odd_line(dice) for _ in range(200)]
    root = tmp_path_factory.mktemp("root")
    options = json.dumps({"stub": True, "root": str(root), "ask": ["touch"]})
    ping = b'\n{"jsonrpc":"2.0","id":"the end","method":"ping"}\n'
    done = subprocess.run(
        [sys.executable, "-m", "tests.mcp.server.launcher", options],
        input=b"\n".join(lines) + ping,
        capture_output=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ends = 0
    for line in done.stdout.splitlines():
        answer: dict[str, Any] = json.loads(line)
        jsonrpc_message_adapter.validate_python(answer)
        ends += answer.get("id") == "the end"
    assert ends == 1
    assert b"Traceback" not in done.stderr
