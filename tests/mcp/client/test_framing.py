"""Lines, messages and floods: whatever a server writes, the reader goes on."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import JSONRPCError, JSONRPCNotification, JSONRPCResponse

from kage.mcp.client.transport.flow import Bucket, Flow
from kage.mcp.client.transport.framing import EDGE, Framer, TooLong
from kage.mcp.client.transport.parse import (
    ANSWER_TOO_LONG,
    INVALID_ANSWER,
    LONG,
    MAX_DEPTH,
    TOO_DEEP,
    Fatal,
    Stray,
    parse,
    parse_too_long,
    read_envelope,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut ``data`` at the given places (modulo its length)."""
    edges = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(edges)]


# ---------------------------------------------------------------------- framing


@given(
    st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b""))), st.lists(st.integers())
)
def test_lines_come_out_whole_however_the_bytes_arrive(
    lines: list[bytes], places: list[int]
) -> None:
    framer = Framer(40)
    data = b"".join(line + b"\n" for line in lines)
    out = [piece for chunk in cut(data, places) for piece in framer.feed(chunk)]
    assert out == lines
    assert framer.pending == 0
    assert list(framer.end()) == []


@given(
    st.lists(st.integers(0, 5000)),
    st.lists(st.integers(0, 100_000), max_size=20),
    st.integers(1, 3000),
)
def test_too_long_lines_cost_only_themselves(
    sizes: list[int], places: list[int], limit: int
) -> None:
    framer = Framer(limit)
    lines = [bytes([65 + index % 26]) * size for index, size in enumerate(sizes)]
    chunks = cut(b"".join(line + b"\n" for line in lines), places)
    out = [piece for chunk in chunks for piece in framer.feed(chunk)]
    ended = [piece for piece in out if not isinstance(piece, TooLong) or piece.ended]
    begun = [piece for piece in out if isinstance(piece, TooLong) and not piece.ended]
    assert len(ended) == len(lines)
    assert len(begun) == sum(size > limit for size in sizes)
    for piece, line in zip(ended, lines, strict=True):
        if isinstance(piece, TooLong):
            assert piece.size == len(line) > limit
            assert piece.head == line[:EDGE]
            assert piece.tail == line[-EDGE:]
        else:
            assert piece == line


def test_an_unfinished_line_is_given_at_the_end() -> None:
    framer = Framer(100)
    assert list(framer.feed(b"one\ntwo")) == [b"one"]
    assert framer.pending == 3
    assert list(framer.end()) == [b"two"]


def test_a_line_without_end_is_held_in_bounded_memory() -> None:
    framer = Framer(1 << 20)
    chunk = b"x" * (1 << 18)
    told = [piece for _ in range(400) for piece in framer.feed(chunk)]
    assert [type(piece) for piece in told] == [TooLong]
    assert framer.pending == 400 << 18
    kept = (value for name in ("_line", "_head", "_tail") for value in [getattr(framer, name)])
    assert sum(map(len, kept)) <= 3 * EDGE
    assert list(framer.feed(b"\nnext\n"))[-1] == b"next"


# ---------------------------------------------------------------------- parsing


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(line: bytes) -> None:
    for item in parse(line):
        assert isinstance(item, SessionMessage | Stray)


@given(JSON)
def test_any_json_is_survived(value: Any) -> None:
    for item in parse(json.dumps(value).encode("utf-8", "surrogatepass")):
        assert isinstance(item, SessionMessage | Stray)


@given(
    st.dictionaries(st.sampled_from(["id", "result", "error", "method", "params"]), JSON),
    st.sampled_from(["2.0", "1.0", None]),
)
def test_any_message_is_survived(message: dict[str, Any], version: str | None) -> None:
    for item in parse(json.dumps({**message, "jsonrpc": version}).encode()):
        assert isinstance(item, SessionMessage | Stray)


@given(
    st.integers(0, 1 << 31) | st.text(max_size=20), JSON.filter(lambda v: not isinstance(v, dict))
)
def test_an_answer_whose_result_is_no_object_fails_that_call(
    request_id: int | str, result: Any
) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}).encode()
    message = only(line).message
    assert isinstance(message, JSONRPCError)
    assert message.id == request_id
    assert message.error.code == INVALID_ANSWER


def only(line: bytes) -> SessionMessage:
    [item] = parse(line)
    assert isinstance(item, SessionMessage)
    return item


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":null}', "null, not an object"),
        (b'{"jsonrpc":"2.0","id":7,"result":[1]}', "an array"),
        (b'{"jsonrpc":"2.0","id":7,"error":"boom"}', "malformed error: boom"),
        (b'{"jsonrpc":"2.0","id":7,"error":{"code":"x","message":"boom"}}', "boom"),
        (b'{"jsonrpc":"1.0","id":7,"result":{}}', "jsonrpc is '1.0'"),
        (b'{"id":7,"result":{}}', "jsonrpc is None"),
        (b'{"jsonrpc":"2.0","id":7,"result":{"a":', "no valid JSON"),
        (b'{"jsonrpc":"2.0","id":7,"result":{"a":1', "no valid JSON"),
        (b'{"jsonrpc":"2.0","id":7,"result":' + b"[" * 9000 + b"]" * 9000 + b"}", "an array"),
        (b'{"jsonrpc":"2.0","id":7,"result":' + b"[" * 9000, "too deeply"),
        (b'{"jsonrpc":"2.0","result":' + b"[" * 9000 + b"}" * 9000 + b',"id":7}', "too deeply"),
        (b'{"jsonrpc":"2.0","id":7,"result":{"n":' + b"9" * 5000 + b'},"x":}', "no valid JSON"),
    ],
)
def test_a_broken_answer_fails_its_call_at_once(line: bytes, words: str) -> None:
    message = only(line).message
    assert isinstance(message, JSONRPCError)
    assert message.id == 7
    assert words in message.error.message


def nested(depth: int) -> bytes:
    inner = b"[" * (depth - 2) + b"]" * (depth - 2)
    return b'{"jsonrpc":"2.0","id":7,"result":{"a":' + inner + b"}}"


def depth_of(value: Any) -> int:
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, list | dict):
            deepest = max(deepest, depth)
            inner = item.values() if isinstance(item, dict) else item
            waiting += [(part, depth + 1) for part in inner]
    return deepest


@given(
    st.sampled_from([5, 0, -1, 2**60, "x", "", True, None, 1.5, [1]]),
    st.sampled_from(["2.0", "1.0", 2, None]),
    st.dictionaries(st.sampled_from(["result", "error", "method", "params", "_meta"]), JSON),
)
def test_a_long_line_is_read_as_a_short_one_is(
    request_id: object, version: object, rest: dict[str, Any]
) -> None:
    short = json.dumps({"jsonrpc": version, "id": request_id, **rest}).encode()
    long = short[:1] + b" " * LONG + short[1:]
    for one, other in zip(parse(short), parse(long), strict=True):
        if isinstance(one, Stray):
            assert isinstance(other, Stray)
        else:
            assert repr(one) == repr(other)


@pytest.mark.parametrize("depth", [3, 149, 150, 151, 152, 300, 5000, 200_000])
def test_nothing_deeper_than_the_limit_is_passed_on(depth: int) -> None:
    message = only(nested(depth)).message
    assert isinstance(message, JSONRPCResponse)
    assert depth_of(message.model_dump()) == min(depth, MAX_DEPTH)


def test_what_is_too_deep_does_not_cost_what_stands_beside_it() -> None:
    deep = b'{"a":' * 3000 + b'"}{\\""' + b"}" * 3000
    tools = b'[{"name":"one","x":' + deep + b'},{"name":"two"},{"y":' + deep + b"}]"
    message = only(b'{"jsonrpc":"2.0","id":7,"result":{"tools":' + tools + b"}}").message
    assert isinstance(message, JSONRPCResponse)
    assert [tool.get("name") for tool in message.result["tools"]] == ["one", "two", None]
    assert TOO_DEEP in str(message.result["tools"][0]["x"])


def test_brackets_inside_of_texts_are_not_depth() -> None:
    text = "[" * 500 + "]" * 500
    line = json.dumps({"jsonrpc": "2.0", "id": 7, "result": {"a": text}}).encode()
    message = only(line).message
    assert isinstance(message, JSONRPCResponse)
    assert message.result["a"] == text


def test_bad_bytes_and_half_surrogates_cost_only_themselves() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"result":{"text":"caf\xe9 \\ud800 end"}}\r'
    message = only(line).message
    assert isinstance(message, JSONRPCResponse)
    assert message.result["text"] == "caf\ufffd \ufffd end"


def test_odd_but_valid_lines_are_read() -> None:
    assert isinstance(
        only(b'\xef\xbb\xbf {"jsonrpc":"2.0","id":1,"result":{}} \r').message, JSONRPCResponse
    )
    nan = only(b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN,"b":-Infinity}}').message
    assert isinstance(nan, JSONRPCResponse)
    assert list(parse(b"")) == list(parse(b"  \t\r")) == []


@pytest.mark.parametrize(
    "line",
    [
        b"Server listening on stdio",
        b"{not json}",
        b"[1, 2",
        b"[INFO] started",
        b"42",
        b'"text"',
        b"{}",
        b'{"id":null,"result":{}}',
        b'{"jsonrpc":"2.0","id":true,"result":null}',
        b"\x00\xff\xfe",
        b"{" * 5000,
        b"[" * 5000,
        b'{"jsonrpc":"2.0","method":7}',
    ],
)
def test_what_is_no_message_is_stray(line: bytes) -> None:
    items = list(parse(line))
    assert items
    assert all(isinstance(item, Stray) for item in items)


def test_an_array_gives_its_messages() -> None:
    """Revision 2025-03-26 lets a server send batches."""
    answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
    notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
    note, first, second, third = parse(json.dumps([answer, notice, 7]).encode())
    assert isinstance(note, Stray)
    assert "3 messages" in note.text
    assert isinstance(first, SessionMessage)
    assert isinstance(second, SessionMessage)
    assert isinstance(first.message, JSONRPCResponse)
    assert isinstance(second.message, JSONRPCNotification)
    assert third == Stray("7")


def test_stray_lines_are_clipped() -> None:
    [item] = parse(b"x" * 1_000_000)
    assert isinstance(item, Stray)
    assert len(item.text) <= 2000


# ---------------------------------------------------------------------- envelopes, long lines


@given(st.integers(-(1 << 60), 1 << 60) | st.text(max_size=30), st.booleans())
def test_an_id_is_read_from_either_end(request_id: int | str, last: bool) -> None:
    big: dict[str, Any] = {"content": [{"type": "text", "text": 'y","id":8}' * 3000}], "id": 9}
    order: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "result": big}
    if last:
        order = {"jsonrpc": "2.0", "result": big, "id": request_id}
    line = json.dumps(order).encode()
    envelope = read_envelope(line[:EDGE], line[-EDGE:])
    assert (envelope.id, envelope.answer, envelope.request) == (request_id, True, False)


def test_an_id_inside_the_result_is_not_taken_for_the_answers_own() -> None:
    line = b'{"jsonrpc":"2.0","result":{"x":"' + b"y" * 10_000 + b'","id":7}}'
    assert read_envelope(line[:EDGE], line[-EDGE:]).id is None
    text = b'{"jsonrpc":"2.0","result":{"x":"' + b"y" * 10_000 + b'\\"id\\":7}"}}'
    assert read_envelope(text[:EDGE], text[-EDGE:]).id is None


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_reading_an_envelope_never_raises(head: bytes, tail: bytes) -> None:
    for start in (head, b'{"jsonrpc":"2.0","id":' + head, b'{"result":' + head):
        read_envelope(start, tail)


def long_line(line: bytes, limit: int = 5000) -> list[object]:
    """Give what becomes of a too long line, when it begins and when it ends."""
    pieces = [piece for piece in Framer(limit).feed(line + b"\n") if isinstance(piece, TooLong)]
    return [parse_too_long(piece, limit) for piece in pieces]


BULK = b"x" * 20_000


def test_a_too_long_answer_fails_its_call_before_it_ends() -> None:
    early, late = long_line(b'{"jsonrpc":"2.0","id":3,"result":{"a":"' + BULK + b'"}}')
    assert isinstance(early, SessionMessage)
    assert isinstance(early.message, JSONRPCError)
    assert early.message.id == 3
    assert early.message.error.code == ANSWER_TOO_LONG
    assert late is None


def test_a_too_long_answer_with_its_id_last_fails_its_call() -> None:
    early, late = long_line(b'{"jsonrpc":"2.0","result":{"a":"' + BULK + b'"},"id":"q"}')
    assert early is None
    assert isinstance(late, SessionMessage)
    assert isinstance(late.message, JSONRPCError)
    assert late.message.id == "q"


def test_a_too_long_line_nobody_can_place_ends_the_connection() -> None:
    early, late = long_line(b'{"jsonrpc":"2.0","result":{"a":"' + BULK + b'"}}')
    assert early is None
    assert isinstance(late, Fatal)
    assert "max_message_bytes" in late.reason
    assert isinstance(long_line(b'[{"jsonrpc":"2.0","id":3,"result":"' + BULK + b'"}]')[1], Fatal)


@pytest.mark.parametrize(
    "line",
    [
        BULK,
        b"[INFO] " + BULK,
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"' + BULK + b'"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"x":"'
        + BULK
        + b'"}}',
    ],
)
def test_a_too_long_line_that_answers_nothing_is_only_noted(line: bytes) -> None:
    early, late = long_line(line)
    assert early is None
    assert isinstance(late, Stray)


# ---------------------------------------------------------------------- floods


def test_a_bucket_lets_a_burst_through_and_then_its_rate() -> None:
    bucket = Bucket(burst=10, rate=5)
    assert sum(bucket.take(1.0) for _ in range(100)) == 10
    assert sum(bucket.take(2.0) for _ in range(100)) == 5
    assert sum(bucket.take(1.5) for _ in range(100)) == 0  # a clock never runs back, nor pays


@given(st.lists(st.floats(0, 0.01), max_size=400), st.integers(0, 399))
def test_the_last_change_notice_always_comes_through(gaps: list[float], mark: int) -> None:
    flow, now, seen = Flow(), 0.0, -1
    for index, gap in enumerate(gaps):
        now += gap
        seen = max([seen, *flow.due(now)])
        if flow.admit(index, "notifications/tools/list_changed", None, now):
            seen = index
    seen = max([seen, *flow.due(now + 1)])
    assert seen == len(gaps) - 1


def test_ordinary_traffic_passes_in_order_and_at_once() -> None:
    flow = Flow()
    for index in range(500):
        params = {"progressToken": 1, "progress": index}
        assert flow.admit(index, "notifications/progress", params, index * 0.001)
    assert flow.dropped == 0
    assert flow.next is None


def test_a_progress_flood_keeps_the_last_of_each_call() -> None:
    flow, passed = Flow(), []
    for index in range(30_000):
        token = index % 3
        params = {"progressToken": token, "progress": index}
        if flow.admit((token, index), "notifications/progress", params, 1.0):
            passed.append((token, index))
    passed += flow.due(2.0)
    assert {token: index for token, index in passed} == {0: 29_997, 1: 29_998, 2: 29_999}
    assert len(passed) + flow.dropped == 30_000
    assert len(passed) < 2000


def test_a_flood_of_anything_is_bounded_and_counted() -> None:
    flow = Flow()
    for method in ("notifications/message", "notifications/whatever"):
        passed = sum(flow.admit(index, method, {}, 1.0) for index in range(20_000))
        assert passed < 2000
    assert flow.dropped > 36_000
    for index in range(20_000):  # tokens without end are no way around
        flow.admit(index, "notifications/progress", {"progressToken": index}, 1.0)
    assert len(flow.due(9.0)) <= 256
