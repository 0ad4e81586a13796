"""The tap alone, between two memory streams: what passes, what is changed and what is not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter

from kage.core.canonical import canonical
from kage.core.errors import Refused
from kage.core.redact import Redactor
from kage.mcp.client.asking.requests import MAX_OPEN, ServerRequests
from kage.mcp.client.calling.shape import misfit
from kage.mcp.client.connections.era import Probe, Reply
from kage.mcp.client.servers.eras import Eras
from kage.mcp.client.wire.ends import MAX_WAITING
from kage.mcp.client.wire.exchange import Exchange, Written
from kage.mcp.client.wire.ledger import Ledger
from kage.mcp.client.wire.seal import sealed
from kage.mcp.client.wire.tap import Tap
from kage.mcp.client.wire.wash import MAX_DEPTH, TooDeep, heavy, wash
from tests.mcp.client.harness import Seals, run
from tests.waiting import DEADLINE, until

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


class Pipe:
    """Both ends of a tap: ``sdk_*`` is what the SDK holds, ``server_*`` what a server would."""

    def __init__(self, tap: Tap, reader: Any, server_in: Any, server_out: Any) -> None:
        self.tap = tap
        self._reader = reader
        self._in = server_in
        self._out = server_out

    async def request(self, number: int, method: str, params: Any = None) -> dict[str, Any]:
        """Send as the SDK would; gives what the server reads."""
        message = JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params=params)
        task = asyncio.create_task(self.tap.send(SessionMessage(message)))
        item = await asyncio.wait_for(self._in.receive(), DEADLINE)
        await task
        return plain(item)

    async def say(self, **message: Any) -> None:
        """Write as the server would."""
        parsed = jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", **message})
        await self._out.send(SessionMessage(parsed))

    async def read(self) -> dict[str, Any]:
        """Read as the server would."""
        return plain(await asyncio.wait_for(self._in.receive(), DEADLINE))

    async def hear(self) -> dict[str, Any]:
        """Read as the SDK would."""
        return plain(await asyncio.wait_for(self._reader.receive(), DEADLINE))


def plain(item: SessionMessage) -> dict[str, Any]:
    dumped: dict[str, Any] = item.message.model_dump(by_alias=True, exclude_unset=True)
    return dumped


@asynccontextmanager
async def pipe(
    *,
    seals: Seals | None = None,
    redactor: Redactor | None = None,
    changed: Callable[[], None] = lambda: None,
) -> AsyncIterator[Pipe]:
    to_server, server_in = anyio.create_memory_object_stream[SessionMessage](0)
    server_out, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    @asynccontextmanager
    async def streams() -> AsyncIterator[Any]:
        async with to_server, server_in, server_out, from_server:
            yield from_server, to_server

    tap = Tap(
        streams(),
        connection="c1",
        seals=seals or Seals(),
        redact=redactor or Redactor(),
        trace=lambda line: None,
        changed=changed,
        ended=asyncio.Event(),
    )
    async with tap.streams() as (reader, _):
        yield Pipe(tap, reader, server_in, server_out)


def test_a_call_without_a_decision_is_not_written() -> None:
    async def main() -> None:
        seals = Seals(willing=False)
        async with pipe(seals=seals) as p:
            message = JSONRPCRequest(
                jsonrpc="2.0", id=1, method="tools/call", params={"name": "t", "arguments": {}}
            )
            exchange = Exchange()
            with exchange.current(), pytest.raises(Refused):
                await p.tap.send(SessionMessage(message))
            assert exchange.written is Written.NO
            assert seals.asked == [("c1", "t", {})]
            assert (p.tap.meter.sent, p.tap.meter.refused) == (0, 1)

    run(main)


def test_an_answer_finds_its_request_by_an_id_nobody_can_guess() -> None:
    async def main() -> None:
        async with pipe() as p:
            sent = await p.request(1, "ping")
            assert sent["id"] != 1
            await p.say(id=1, result={"forged": True})
            await p.say(id=sent["id"], result={"real": True})
            assert await p.hear() == {"jsonrpc": "2.0", "id": 1, "result": {"real": True}}
            assert p.tap.meter.dropped == 1

    run(main)


def test_a_second_answer_to_one_request_is_dropped() -> None:
    async def main() -> None:
        async with pipe() as p:
            first, second = await p.request(1, "ping"), await p.request(2, "ping")
            await p.say(id=first["id"], result={"n": 1})
            await p.say(id=first["id"], result={"n": 2})
            await p.say(id=second["id"], result={"n": 3})
            assert (await p.hear())["result"] == {"n": 1}
            assert (await p.hear())["result"] == {"n": 3}

    run(main)


def test_an_id_that_comes_back_as_text_fails_its_request() -> None:
    async def main() -> None:
        async with pipe() as p:
            sent = await p.request(1, "ping")
            await p.say(id=str(sent["id"]), result={})
            heard = await p.hear()
            assert heard["id"] == 1
            assert "another type" in heard["error"]["message"]

    run(main)


def test_a_cancel_names_the_id_on_the_wire_and_one_never_written_is_not_cancelled() -> None:
    async def main() -> None:
        async with pipe() as p:
            sent = await p.request(7, "ping")
            for number in (99, 7):
                notice = JSONRPCNotification(
                    jsonrpc="2.0", method="notifications/cancelled", params={"requestId": number}
                )
                task = asyncio.create_task(p.tap.send(SessionMessage(notice)))
                if number == 7:
                    heard = plain(await p._in.receive())
                    assert heard["params"]["requestId"] == sent["id"]
                await task

    run(main)


def test_change_notices_are_told_and_noise_does_not_reach_the_sdk() -> None:
    changes: list[int] = []

    async def main() -> None:
        async with pipe(changed=lambda: changes.append(1)) as p:
            sent = await p.request(1, "ping")
            await p.say(method="notifications/tools/list_changed")
            await p.say(method="notifications/message", params={"level": "info", "data": "x"})
            await p.say(method="notifications/progress", params={"progressToken": 1})
            await p.say(method="notifications/unheard_of")
            await p.say(id=sent["id"], result={})
            assert (await p.hear())["id"] == 1
            assert changes == [1]

    run(main)


def test_a_server_cannot_pile_up_requests() -> None:
    async def main() -> None:
        async with pipe() as p:
            for number in range(MAX_OPEN + 20):
                await p.say(id=number, method="ping")
            await p.say(id=0, method="ping")  # is open: any answer would be taken for the first's
            refused = [await p.read() for _ in range(20)]
            assert [message["id"] for message in refused] == list(range(MAX_OPEN, MAX_OPEN + 20))
            assert all("were open at once" in message["error"]["message"] for message in refused)
            sent = await p.request(1, "ping")
            await p.say(id=sent["id"], result={})
            heard = [await p.hear() for _ in range(MAX_OPEN + 1)]
            assert [message["id"] for message in heard[:-1]] == list(range(MAX_OPEN))
            assert heard[-1]["result"] == {}

    run(main)
    requests = ServerRequests()
    assert requests.admit(1)
    assert not requests.admit(1)
    requests.settle(1)
    assert requests.admit(1)


def test_a_secret_in_an_answer_is_replaced_before_anybody_sees_it() -> None:
    async def main() -> None:
        redactor = Redactor()
        redactor.add("TOKEN", "hunter2-hunter2")
        async with pipe(redactor=redactor) as p:
            exchange = Exchange()
            with exchange.current():
                sent = await p.request(1, "tools/call", {"name": "t", "arguments": {}})
            content = [{"type": "text", "text": "it is hunter2-hunter2"}]
            await p.say(id=sent["id"], result={"content": content})
            await p.hear()
            assert exchange.result is not None
            assert exchange.result["content"][0]["text"] == "it is [redacted:TOKEN]"
            assert exchange.written is Written.YES

    run(main)


def test_closing_ends_both_directions_at_once() -> None:
    async def main() -> None:
        async with pipe() as p:
            p.tap.close()
            with pytest.raises(anyio.EndOfStream):
                await p._reader.receive()
            with pytest.raises(anyio.ClosedResourceError):
                await p.tap.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="ping")))
            with pytest.raises(anyio.ClosedResourceError):
                await p.tap.send(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={})))

    run(main)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_what_is_sealed_is_a_copy_nobody_else_can_change(arguments: dict[str, Any]) -> None:
    seals = Seals()
    before = canonical(arguments)
    params, decision = sealed(seals, "c", {"name": "t", "arguments": arguments})
    arguments["later"] = "edited"
    [(_, tool, bound)] = seals.asked
    assert (tool, decision) == ("t", "d1")
    assert canonical(bound) == canonical(params["arguments"]) == before


@pytest.mark.parametrize(
    "arguments", [{"a": float("inf")}, {"a": "\udc80"}, {1: 1}, [1], "text", {"a": object()}]
)
def test_what_has_no_canonical_form_is_refused_before_the_seal(arguments: Any) -> None:
    seals = Seals()
    with pytest.raises(Refused):
        sealed(seals, "c", {"name": "t", "arguments": arguments})
    assert seals.asked == []


class Script:
    """A probe with a clock of its own."""

    def __init__(self, *, wait: float | None = 2.0, modern_only: bool = False) -> None:
        self.replies: list[Reply] = []
        self.timers: list[Callable[[], None]] = []
        self.probe = Probe(
            wait=wait,
            modern_only=modern_only,
            reply=self.replies.append,
            later=lambda seconds, then: self.timers.append(then),
        )

    def answer(self, request: int, method: str, result: Any = None, code: int = 0) -> bool:
        return self.probe.answered(request, method, result=result, code=code, message="no")


MODERN = {"supportedVersions": ["2026-07-28"]}


def test_an_answered_probe_is_remembered_and_a_timed_out_one_is_not() -> None:
    for result, code, verdict in ((MODERN, 0, "modern"), (None, -32601, "legacy")):
        script = Script()
        assert script.probe.asking(1)
        assert script.answer(1, "server/discover", result, code)
        script.timers[0]()  # too late to matter
        assert script.replies == []
        assert script.probe.verdict == verdict
    script = Script()
    script.probe.asking(1)
    script.timers[0]()
    assert [reply.id for reply in script.replies] == [1]
    assert script.probe.verdict is None


def test_a_late_genuine_answer_switches_the_open_handshake_to_the_modern_era() -> None:
    script = Script()
    script.probe.asking(1)
    script.timers[0]()
    assert script.probe.shaking(2)
    assert not script.answer(1, "server/discover", MODERN)
    assert (script.replies[1].id, script.replies[1].code) == (2, -32022)
    assert not script.answer(2, "initialize", {"protocolVersion": "2025-11-25"})
    assert not script.probe.asking(3)
    assert script.replies[2] == Reply(id=3, result=MODERN)
    assert script.probe.verdict == "modern"


def test_a_late_error_changes_nothing_but_is_remembered() -> None:
    script = Script()
    script.probe.asking(1)
    script.timers[0]()
    script.probe.shaking(2)
    assert not script.answer(1, "server/discover", None, -32601)
    assert script.answer(2, "initialize", {"protocolVersion": "2025-11-25"})
    assert script.probe.verdict == "legacy"


def test_an_entry_for_the_modern_era_only_never_shakes_hands() -> None:
    script = Script(wait=None, modern_only=True)
    assert script.probe.asking(1)
    assert script.timers == []
    assert not script.probe.shaking(2)
    script.answer(1, "server/discover", None, -32601)
    assert script.replies[0].id == 2
    assert "2026-07-28" in script.replies[0].message


def test_verdicts_are_kept_per_entry() -> None:
    eras = Eras()
    eras.remember("a", "legacy")
    assert (eras.known("a"), eras.known("b")) == ("legacy", None)
    eras.forget("a")
    assert eras.known("a") is None


def test_the_ledger_gives_each_answer_once() -> None:
    ledger = Ledger()
    exchange = Exchange()
    wire = ledger.add(1, "tools/call", exchange)
    assert ledger.by_token(exchange.token) is exchange
    assert ledger.answered(True) is None
    pending = ledger.answered(wire)
    assert pending is not None
    assert pending.sdk_id == 1
    assert ledger.answered(wire) is None
    assert ledger.by_token(exchange.token) is None
    assert ledger.add("listen-1", "subscriptions/listen", None) == "listen-1"
    assert ledger.has(method="subscriptions/listen")


@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_washing_changes_nothing_that_holds_no_secret(value: dict[str, Any]) -> None:
    assert canonical(wash(value, lambda text: text)) == canonical(json.loads(canonical(value)))


def test_washing_mends_and_bounds() -> None:
    redactor = Redactor()
    redactor.add("KEY", "object")
    picture = {"type": "image", "data": "b2JqZWN0", "mimeType": "image/png"}
    washed = wash({"type": "object", "text": "an object \ud800", "parts": [picture]}, redactor)
    assert washed["type"] == "object"
    assert washed["text"] == "an [redacted:KEY] \ufffd"
    assert washed["parts"] == [picture]
    assert wash({"n": float("nan")}, str) == {"n": "nan"}
    deep: Any = {}
    for _ in range(MAX_DEPTH + 5):
        deep = {"a": deep}
    with pytest.raises(TooDeep):
        wash(deep, str)


@pytest.mark.parametrize(
    ("schema", "value", "wrong"),
    [
        ({"type": "object", "required": ["a"]}, {}, "lacks 'a'"),
        ({"properties": {"a": {"type": "integer"}}}, {"a": "x"}, "/a is no integer"),
        ({"properties": {"a": {"type": "integer"}}}, {"a": True}, "/a is no integer"),
        ({"properties": {"a": {"type": "integer"}}}, {"a": 2.0}, ""),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"enum": [1]}}}, True, "none of the 1"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 3, "fits none"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, ""),
        ({"additionalProperties": False}, {"a": 1}, "/a is not allowed"),
        ({"items": {"type": "string"}}, ["a", 1], "/1 is no string"),
        ({"$ref": "http://127.0.0.1:9/x"}, 1, ""),
        ({"$ref": "#"}, 1, ""),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 9}}}, 1, ""),
        ({"pattern": "(a+)+$"}, "a" * 60 + "b", ""),
    ],
)
def test_a_misfit_is_found_in_bounded_time(schema: Any, value: Any, wrong: str) -> None:
    found = misfit(schema, value)
    assert wrong in found
    assert bool(found) == bool(wrong)


def test_what_the_sdk_does_not_take_holds_the_server_back() -> None:
    async def main() -> None:
        async with pipe() as p:
            asked = [(await p.request(n, "ping"))["id"] for n in range(2 * MAX_WAITING)]
            told = 0

            async def answer() -> None:
                nonlocal told
                for wire in asked:
                    await p.say(id=wire, result={})
                    told += 1

            saying = asyncio.create_task(answer())
            await until(lambda: told >= MAX_WAITING)
            await asyncio.sleep(0.05)
            assert told <= MAX_WAITING + 2
            heard = [(await p.hear())["id"] for _ in asked]
            assert heard == list(range(2 * MAX_WAITING))
            await saying

    run(main)


def test_closing_frees_whoever_is_held_back() -> None:
    async def main() -> None:
        async with pipe() as p:
            asked = [(await p.request(n, "ping"))["id"] for n in range(2 * MAX_WAITING)]
            saying = asyncio.gather(*(p.say(id=wire, result={}) for wire in asked))
            await asyncio.sleep(0.01)
            p.tap.close()
            await asyncio.wait_for(saying, DEADLINE)

    run(main)


@pytest.mark.parametrize("big", [["x"] * 100_000, {"a": "x" * 5_000_000}])
def test_a_big_answer_is_washed_beside_the_loop_and_stays_in_order(big: Any) -> None:
    assert heavy(big)
    assert not heavy({"content": [{"type": "text", "text": "x" * 1000}] * 100})

    async def main() -> None:
        async with pipe() as p:
            first = await p.request(1, "big")
            second = await p.request(2, "small")
            saying = asyncio.create_task(p.say(id=first["id"], result={"value": big}))
            await saying
            await p.say(id=second["id"], result={})
            assert [(await p.hear())["id"] for _ in range(2)] == [1, 2]

    run(main)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "9" * 400, "true"])
def test_progress_no_bar_can_show_is_dropped(number: str) -> None:
    async def main() -> None:
        reports: list[Any] = []
        async with pipe() as p:
            exchange = Exchange(progress=lambda *report: reports.append(report))
            with exchange.current():
                sent = await p.request(1, "tools/call", {"name": "t", "arguments": {}})
                token = sent["params"]["_meta"]["progressToken"]
                for progress, total in ((number, "1"), ("1", number)):
                    value = {"progress": json.loads(progress), "total": json.loads(total)}
                    params = {"progressToken": token, **value}
                    await p.say(method="notifications/progress", params=params)
                await p.say(id=sent["id"], result={"content": []})
                await p.hear()
        assert reports == [(1.0, None, "")]

    run(main)
