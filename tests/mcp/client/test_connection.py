"""Calls over one connection: every way they end, and what reaches the server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kage.core.canonical import canonical
from kage.core.content import Audio, Image, Resource, ResourceLink, Text
from kage.core.messages import Outcome
from kage.core.servers import ServerState
from tests.mcp.client.harness import Seals, bench, recorded, run, spec, text
from tests.waiting import until

LEGACY = ("--revisions", "2025-06-18")
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
)
def test_a_tool_answers_in_every_revision(tmp_path: Path, revision: str) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", "--revisions", revision))
            result = await b.call("echo__echo", {"text": "hi ☃"})
            assert (result.outcome, text(result)) == (Outcome.OK, "hi ☃")
            assert b.status("echo").protocol == revision
            assert b.status("echo").version == "echo 1.0"

    run(main)


def test_without_an_open_decision_no_call_reaches_the_server(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path, seals=Seals(willing=False)) as b:
            await b.up(spec("echo", "--record", record))
            for arguments in ({"text": "one"}, {}, {"text": "x" * 100_000}):
                result = await b.call("echo__echo", arguments)
                assert result.outcome is Outcome.REFUSED
                assert "no open decision" in text(result)
            b.seals.willing = True
            assert (await b.call("echo__echo", {"text": "now"})).outcome is Outcome.OK

    run(main)
    calls = recorded(record, "tools/call")
    assert [call["params"]["arguments"] for call in calls] == [{"text": "now"}]


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(arguments=st.dictionaries(st.text(), values, max_size=4))
def test_what_is_bound_is_what_is_written(tmp_path: Path, arguments: Mapping[str, Any]) -> None:
    record = tmp_path / "record"
    record.unlink(missing_ok=True)

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", "--record", record))
            await b.call("echo__echo", arguments)
            [(connection, tool, bound)] = b.seals.asked
            tool_spec = b.tools["echo__echo"].spec
            assert tool_spec.server is not None
            assert (connection, tool) == (tool_spec.server.connection, "echo")
            assert canonical(bound) == canonical(arguments)

    run(main)
    [call] = recorded(record, "tools/call")
    assert canonical(call["params"]["arguments"]) == canonical(arguments)


def test_arguments_json_cannot_carry_are_never_sent(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", "--record", record))
            for odd in (float("nan"), "\ud800", {1: 2}, {"a", "b"}):
                result = await b.call("echo__echo", {"text": odd})
                assert result.outcome is Outcome.REFUSED

    run(main)
    assert recorded(record, "tools/call") == []


def test_request_ids_cannot_be_guessed(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", "--record", record))
            for _ in range(3):
                await b.call("echo__echo", {"text": ""})

    run(main)
    ids = [call["id"] for call in recorded(record, "tools/call")]
    tokens = [call["params"]["_meta"]["progressToken"] for call in recorded(record, "tools/call")]
    assert len(set(ids)) == len(set(tokens)) == 3
    assert min(ids) > 1_000_000


def test_a_failed_tool_gives_its_text(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo"))
            result = await b.call("echo__fail", {"text": "no such row"})
            assert (result.outcome, text(result)) == (Outcome.TOOL_ERROR, "no such row")

    run(main)


def test_every_kind_of_content_arrives_typed(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("media"))
            result = await b.call("media__give")
            kinds = {type(part) for part in result.content}
            assert kinds == {Text, Image, Audio, Resource, ResourceLink}
            structured = await b.call("media__give", {"kind": "structured"})
            assert structured.structured == {"answer": 42, "list": [1, 2]}
            assert (await b.call("media__give", {"kind": "empty"})).outcome is Outcome.OK

    run(main)


@pytest.mark.parametrize("revisions", [(), LEGACY])
@pytest.mark.parametrize(
    ("how", "outcome", "words"),
    [
        ("null", Outcome.TOOL_ERROR, "null"),
        ("list", Outcome.TOOL_ERROR, "cannot read"),
        ("unknown_content", Outcome.OK, "hologram"),
        ("bad_content", Outcome.OK, "cannot read"),
        ("no_content", Outcome.TOOL_ERROR, "no content"),
        ("string_id", Outcome.TOOL_ERROR, "another type"),
        ("deep", Outcome.TOOL_ERROR, "odd"),
        ("nan", Outcome.OK, "ok"),
        ("twice", Outcome.OK, "ok"),
        ("batch", Outcome.OK, "ok"),
        ("bad_error", Outcome.TOOL_ERROR, "it broke"),
        ("error", Outcome.TOOL_ERROR, "boom"),
        ("no_jsonrpc", Outcome.TOOL_ERROR, "jsonrpc"),
        ("cut", Outcome.TOOL_ERROR, "cannot read"),
    ],
)
def test_an_odd_answer_fails_its_call_at_once_and_nothing_else(
    tmp_path: Path, how: str, outcome: Outcome, words: str, revisions: tuple[str, ...]
) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("odd_results", *revisions))
            result = await b.call("odd_results__odd", {"how": how})
            assert "given up" not in text(result)  # not by its limit
            assert (result.outcome, words in text(result)) == (outcome, True), text(result)
            assert text(await b.call("odd_results__echo", {"text": "still"})) == "still"

    run(main)


def test_a_result_that_breaks_its_schema_is_kept_with_a_warning(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("media"))
            result = await b.call("media__checked")
            assert result.outcome is Outcome.OK
            assert result.structured == {"answer": "no number"}
            assert "breaks what 'checked' promised: /answer is no integer" in text(result)

    run(main)


def test_silence_ends_a_call_at_its_limit_and_the_server_is_told(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", "--record", record, tool_timeouts={"sleep": 0.4}))
            result = await b.call("echo__sleep", {"seconds": 60})
            assert result.outcome is Outcome.UNKNOWN
            for word in ("'sleep'", "'echo'", "0.4 s", "may still be running"):
                assert word in text(result)
            await until(lambda: recorded(record, "notifications/cancelled"))
            assert text(await b.call("echo__echo", {"text": "kept"})) == "kept"
            assert b.states("echo")[-1] == "connected"

    run(main)
    [call, _] = recorded(record, "tools/call")
    [notice] = recorded(record, "notifications/cancelled")
    assert notice["params"]["requestId"] == call["id"]


def test_progress_for_ever_ends_at_the_hard_limit(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", tool_timeout=5.0, tool_max_time=0.8))
            result = await b.call("echo__progress", {"steps": 1000, "pause": 0.1})
            assert result.outcome is Outcome.UNKNOWN
            assert "0.8 s" in text(result)
            assert "tool_max_time" in text(result)

    run(main)


def test_a_tool_may_have_a_limit_of_its_own(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", tool_timeouts={"sleep": 0.3}))
            result = await b.call("echo__sleep", {"seconds": 30})
            assert "0.3 s" in text(result)

    run(main)


def test_cancelling_a_call_tells_the_server_and_keeps_the_connection(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", "--record", record))
            task = asyncio.create_task(b.call("echo__sleep", {"seconds": 30}))
            await until(lambda: recorded(record, "tools/call"))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: recorded(record, "notifications/cancelled"))
            assert text(await b.call("echo__echo", {"text": "on"})) == "on"

    run(main)


def test_no_more_calls_run_at_once_than_allowed(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", "--record", record, max_parallel_calls=2))
            calls = [asyncio.create_task(b.call("echo__sleep", {"seconds": 60})) for _ in range(4)]
            await until(lambda: len(recorded(record, "tools/call")) == 2)
            await asyncio.sleep(0.1)
            assert len(recorded(record, "tools/call")) == 2
            for call in calls[:2]:
                call.cancel()
            await until(lambda: len(recorded(record, "tools/call")) == 4, what="the next two")
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    run(main)


def test_a_crash_in_a_call_leaves_its_outcome_unknown_and_says_why(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("crash", "--record", record))
            result = await b.call("crash__crash")
            assert result.outcome is Outcome.UNKNOWN
            for words in ("exit code 7", "the index is corrupt", "unknown whether it acted"):
                assert words in text(result)
            await b.state("crash", ServerState.CONNECTED)

    run(main)
    assert len(recorded(record, "tools/call")) == 1  # never twice


@pytest.mark.parametrize("when", ["half", "after"])
def test_a_crash_by_a_signal_names_the_signal(tmp_path: Path, when: str) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("crash", "--when", when, "--signal", "9"))
            result = await b.call("crash__crash")
            assert result.outcome is Outcome.UNKNOWN
            assert "SIGKILL" in text(result)

    run(main)


def test_an_exit_is_noticed_although_a_grandchild_holds_the_output(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("grandchild"))
            result = await b.call("grandchild__leave")
            assert result.outcome is Outcome.UNKNOWN
            assert "given up" not in text(result)  # not by its limit

    run(main)


def test_a_call_to_a_server_that_is_gone_is_never_sent(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("crash"))
            echo = b.tools["crash__echo"]
            await b.call("crash__crash")
            await until(lambda: "connecting" in b.states("crash"))
            b.tools["crash__echo"] = echo
            result = await b.call("crash__echo", {"text": "late"})
            assert result.outcome is Outcome.NEVER_SENT
            assert "never sent" in text(result)

    run(main)


def test_a_server_that_stops_reading_cannot_hold_a_call_past_its_limit(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("stops_reading", tool_timeout=0.6))
            big = {"text": "x" * 2_000_000}
            first = asyncio.create_task(b.call("stops_reading__take", big))
            await asyncio.sleep(0.1)
            second = asyncio.create_task(b.call("stops_reading__take", {"text": "small"}))
            results = await asyncio.gather(first, second)
            assert results[0].outcome is Outcome.UNKNOWN
            assert results[1].outcome is Outcome.NEVER_SENT
            await until(lambda: b.states("stops_reading").count("connecting") == 2)

    run(main)


def test_an_answer_over_the_limit_fails_its_call_only(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", max_message_bytes=100_000))
            result = await b.call("echo__long", {"size": 1_000_000})
            assert result.outcome is Outcome.TOOL_ERROR
            assert "max_message_bytes" in text(result)
            assert text(await b.call("echo__echo", {"text": "on"})) == "on"

    run(main)


def test_a_secret_of_the_entry_is_replaced_in_results(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path, environ={"CANARY": "s3cr3t-value"}) as b:
            await b.up(spec("echo", env={"TOKEN": "${CANARY}"}))
            result = await b.call("echo__env", {"names": ["TOKEN"]})
            assert "s3cr3t" not in text(result)
            assert "[redacted:" in text(result)

    run(main)


def test_a_secret_that_is_a_word_of_the_protocol_breaks_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", env={"A": "object", "B": "complete", "C": "2025-11-25"}))
            assert b.tools["echo__echo"].spec.schema["type"] == "object"
            assert (await b.call("echo__echo", {"text": "x"})).outcome is Outcome.OK

    run(main)


def test_a_flood_of_notices_does_not_stop_a_call(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("flood"))
            result = await b.call("flood__flood", {"count": 20_000, "kind": "log"})
            assert result.outcome is Outcome.OK
            assert text(await b.call("flood__echo", {"text": "on"})) == "on"

    run(main)


@pytest.mark.parametrize("what", ["elicit", "url", "sample", "roots", "unknown"])
@pytest.mark.parametrize("revisions", [(), LEGACY])
def test_requests_of_a_server_get_no_answer_from_a_person_who_is_not_there(
    tmp_path: Path, what: str, revisions: tuple[str, ...]
) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("asks", "--record", record, *revisions, tool_timeout=10.0))
            await b.call("asks__ask", {"what": what})

    run(main)
    for message in recorded(record):
        if "result" in message:
            assert set(message["result"]) == {"roots"} or message["result"] == {"action": "decline"}
    for message in recorded(record, "initialize"):
        assert set(message["params"]["capabilities"]) == {"roots"}


def test_a_ping_of_a_server_is_answered(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("asks", "--record", record, *LEGACY))
            await b.call("asks__ask", {"what": "ping"})

    run(main)
    assert [message["result"] for message in recorded(record) if "result" in message] == [{}]
