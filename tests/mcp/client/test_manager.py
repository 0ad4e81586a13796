"""The manager: servers come up side by side, break, come back, are replaced and end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil
import pytest

from kage.config.schema import RestartSpec, ServerSpec
from kage.core.errors import ServerError, UsageError
from kage.core.events import Noticed, ServerChanged
from kage.core.messages import Outcome
from kage.core.servers import ServerState, Stage
from kage.mcp.client.faults import reason
from kage.mcp.client.servers.backoff import Backoff
from kage.mcp.client.servers.reconcile import Act, reconcile
from tests.mcp.client.harness import TestClock, bench, recorded, run, spec, text
from tests.stubs import stub
from tests.waiting import until

_FALLS_SILENT = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.stubs.base import Server
server = Server("silent")
def listed(params, message):
    server.receive = lambda message: None
    return {"tools": []}
server.on["tools/list"] = listed
server.run()
"""
# says nothing before all five were started
_MEETS = """
cd "$1"; shift; : > "$0.up"
for one in s0 s1 s2 s3 s4; do until [ -e "$one.up" ]; do sleep 0.05; done; done
exec "$@"
"""
CONNECTED, FAILED = ServerState.CONNECTED, ServerState.FAILED
NEVER = RestartSpec(enabled=False)


def test_making_a_manager_starts_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            assert psutil.Process().children() == []
            assert b.manager.statuses() == ()
            assert b.events == []

    run(main)


def test_servers_start_side_by_side(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            names = [f"s{number}" for number in range(5)]
            entries = [
                ServerSpec(
                    name=name,
                    command="/bin/sh",
                    args=("-c", _MEETS, name, str(tmp_path), *stub("slow", "--delay", 0)),
                    timeout=60.0,
                )
                for name in names
            ]
            await b.up(*entries)
            assert [status.state for status in b.manager.statuses()] == [CONNECTED] * 5
            assert len(b.tools) == 5

    run(main)


def test_start_returns_before_anything_is_up(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            b.manager.start([spec("echo")])
            assert b.status("echo").state is ServerState.CONNECTING
            assert await b.apply() == []
            await b.manager.settled()
            assert b.manager.changed.is_set()
            assert await b.apply() == ["echo"]
            assert not b.manager.changed.is_set()

    run(main)


def test_one_bad_server_leaves_the_others_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            missing = ServerSpec(name="missing", command="no-such-command-anywhere")
            exits = spec("exits", "--code", "3", restart=NEVER)
            await b.up(spec("echo"), missing, exits, spec("legacy24"))
            states = {status.name: status.state for status in b.manager.statuses()}
            assert states == {
                "echo": CONNECTED,
                "missing": FAILED,
                "exits": FAILED,
                "legacy24": CONNECTED,
            }
            assert text(await b.call("echo__echo", {"text": "hi"})) == "hi"

    run(main)


def test_each_kind_of_failed_start_has_a_message_of_its_own(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            missing = ServerSpec(name="missing", command="no-such-command-anywhere")
            gone = spec("exits", "--lines", "30", "--code", "5")
            silent = spec("silent", timeout=1.0)
            await b.up(missing, gone, silent)
            faults = [b.status(name).fault for name in ("missing", "exits", "silent")]
            not_found, exited, unanswered = (fault for fault in faults if fault is not None)
            assert not_found.stage is Stage.SPAWN
            assert "no-such-command-anywhere" in not_found.what
            assert "PATH" in not_found.why
            assert exited.stage is Stage.HANDSHAKE
            assert exited.exit_code == 5
            assert exited.stderr[-1] == "line 30: cannot find module"
            assert len(exited.stderr) == 20
            assert "exit code 5" in exited.what
            assert unanswered.stage is Stage.HANDSHAKE
            assert "never answered the handshake within 1 s" in unanswered.what
            assert all(fault.fix for fault in (not_found, exited, unanswered))

    run(main)


def test_each_fault_is_reported_exactly_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            names = ("exits", "silent", "missing")
            missing = ServerSpec(name="missing", command="no-such-command-anywhere")
            silent = spec("silent", timeout=1.0, restart=NEVER)
            await b.up(spec("exits", restart=NEVER), silent, missing)
            for name in names:
                failed = [s for _, s in b.times if s.name == name and s.state is FAILED]
                assert len(failed) == 1

    run(main)


def test_a_misfit_of_the_handshake_is_told_in_plain_words() -> None:
    from mcp_types import InitializeResult
    from pydantic import ValidationError

    with pytest.raises(ValidationError) as caught:
        InitializeResult.model_validate({"protocolVersion": 5})
    why = reason(ExceptionGroup("", [caught.value]))
    assert why == "protocolVersion: Input should be a valid string"


def test_a_start_no_further_try_can_mend_is_not_tried_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            missing = ServerSpec(name="missing", command="no-such-command-anywhere")
            await b.up(missing, spec("wrong_version"))
            assert b.states("missing") == ["connecting", "failed"]
            assert b.states("wrong_version") == ["connecting", "failed"]

    run(main)


def _reads(file: Path, text: str) -> bool:
    return file.read_text() == text


def test_a_server_that_dies_at_its_start_is_tried_again_by_the_backoff(tmp_path: Path) -> None:
    counter = tmp_path / "starts"

    async def main() -> None:
        clock = TestClock()
        async with bench(tmp_path, clock=clock) as b:
            args = ("--counter", counter, "--works", "0")
            restart = RestartSpec()
            await b.up(spec("restart_breaks", *args, protocol="legacy", restart=restart))
            # settled after the first outcome: nobody waits for the next tries
            assert b.status("restart_breaks").state is ServerState.CONNECTING
            assert (b.status("restart_breaks").attempt, len(counter.read_text())) == (1, 1)
            for middle in (1, 2, 4, 8, 16):
                await until(lambda: clock.waiting)
                assert 0.8 * middle <= min(clock.waiting) <= 1.2 * middle
                clock.advance(1.2 * middle)
                due = "x" * (len(counter.read_text()) + 1)
                await until(partial(_reads, counter, due))
            await b.state("restart_breaks", FAILED)
            fault = b.status("restart_breaks").fault
            assert fault is not None
            assert fault.exit_code == 4

    run(main)
    assert counter.read_text() == "x" * 6


def test_a_variable_that_is_not_set_fails_its_server_and_is_named(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", env={"TOKEN": "${KAGE_TEST_UNSET}"}), spec("legacy24"))
            fault = b.status("echo").fault
            assert fault is not None
            assert fault.stage is Stage.CONFIG
            assert "KAGE_TEST_UNSET" in fault.what
            assert b.status("legacy24").state is CONNECTED

    run(main)


def test_a_disabled_entry_is_listed_and_not_started(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", disabled=True))
            assert b.status("echo").state is ServerState.DISABLED
            assert psutil.Process().children() == []
            assert b.tools == {}

    run(main)


def test_a_server_sees_the_minimal_environment(tmp_path: Path) -> None:
    async def main() -> None:
        environ = {"SECRET_KEY_OF_KAGE": "never", "PASSED_ON": "yes"}
        async with bench(tmp_path, environ=environ) as b:
            await b.up(spec("echo", env={"OWN": "set"}, env_pass=("PASSED_ON",)))
            seen = text(await b.call("echo__env"))
            assert "SECRET_KEY_OF_KAGE" not in seen
            assert "PASSED_ON=yes" in seen
            assert "OWN=set" in seen
            assert "PATH=" in seen

    run(main)


def test_a_silent_old_server_costs_two_seconds_and_one_that_dies_of_the_probe_works(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("probe_deaf"), spec("probe_dies"))
            for name in ("probe_deaf", "probe_dies"):
                assert b.status(name).state is CONNECTED
                assert b.status(name).protocol == "2025-11-25"
                assert b.states(name) == ["connecting", "connected"]
            took = {s.name: at - b.times[0][0] for at, s in b.times if s.state is CONNECTED}
            assert 1.9 < took["probe_deaf"] < 50  # not the 60 of its timeout
            assert text(await b.call("probe_dies__echo", {"text": "alive"})) == "alive"

    run(main)


def test_a_slow_modern_server_is_spoken_to_in_its_era(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(
                spec("modern", "--start-delay", "2.6"),
                spec("slow", "--delay", "2.6"),
                spec("echo", "--start-delay", "2.6", protocol="2026-07-28"),
            )
            for name in ("modern", "slow", "echo"):
                assert b.status(name).protocol == "2026-07-28", name

    run(main)


def test_a_revision_the_entry_rules_out_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("legacy24", protocol="2026-07-28"), spec("modern", protocol="legacy"))
            fault = b.status("legacy24").fault
            assert fault is not None
            assert "2026-07-28" in fault.why
            assert b.status("modern").state is FAILED

    run(main)


def test_a_revision_nobody_knows_is_named_beside_those_kage_speaks(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", "--revisions", "2024-11-05,1999-01-01"))
            fault = b.status("echo").fault
            assert fault is not None
            assert "1999-01-01" in fault.why
            assert "2025-11-25" in fault.why

    run(main)


def test_one_bad_tool_costs_one_tool_and_is_named(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("badschema"))
            assert {"badschema__good", "badschema__last"} <= b.tools.keys()
            dropped = b.status("badschema").dropped
            for name in ("no_schema", "text_schema", "null_schema", "array_root", "deep"):
                assert any(note.startswith(f"{name}: ") for note in dropped), name
                assert f"badschema__{name}" not in b.tools
            assert b.tools["badschema__empty_schema"].spec.schema["type"] == "object"

    run(main)


def test_odd_names_become_legal_and_call_the_original(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("names", "--record", record))
            assert all(len(name) <= 64 for name in b.tools)
            long = [name for name in b.tools if name.startswith("names__xxx")]
            assert len(long) == 2
            await b.call("names__with_slash_and_dot")
            assert any("twice" in note for note in b.status("names").dropped)

    run(main)
    [call] = recorded(record, "tools/call")
    assert call["params"]["name"] == "with/slash.and.dot"


@pytest.mark.parametrize(
    ("options", "count", "note"),
    [
        (("--tools", "250", "--page", "3"), 250, ""),
        (("--loop",), 25, "in circles"),
        (("--endless",), None, "limit"),
        (("--endless", "--padding", "200000"), 350, "too long"),
    ],
)
def test_pages_are_followed_to_their_end_and_no_further(
    tmp_path: Path, options: tuple[str, ...], count: int | None, note: str
) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("pages", *options))
            status = b.status("pages")
            assert status.state is CONNECTED
            assert count is None or status.tools <= count
            assert bool(note) == any(note in entry for entry in status.dropped)

    run(main)


def test_a_changed_list_reaches_the_registry_only_at_a_boundary(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("changer"))
            for how in ("add", "remove", "describe"):
                before = {name: tool.spec for name, tool in b.tools.items()}
                await b.call("changer__mutate", {"how": how})
                await until(b.manager.changed.is_set)
                assert {name: tool.spec for name, tool in b.tools.items()} == before
                await b.apply()
                assert {name: tool.spec for name, tool in b.tools.items()} != before
            assert "changer__extra_1" in b.tools
            assert "changer__victim" not in b.tools
            assert text(await b.call("changer__extra_1")) == "extra_1"

    run(main)


def test_a_changed_definition_has_another_pin(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("changer", "--revisions", "2025-06-18"))
            first = b.tools["changer__victim"].spec.server
            await b.call("changer__mutate", {"how": "schema"})
            await until(b.manager.changed.is_set)
            await b.apply()
            second = b.tools["changer__victim"].spec.server
            assert first is not None
            assert second is not None
            assert first.pin != second.pin
            assert first.entry_hash == second.entry_hash

    run(main)


def test_a_storm_of_change_notices_ends_in_the_right_list(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("changer", "--record", record))
            for _ in range(3):
                await b.call("changer__storm", {"count": 2000})
            await until(b.manager.changed.is_set)
            await until(lambda: b.status("changer").tools == 6)
            await b.apply()
            assert {f"changer__extra_{n}" for n in (1, 2, 3)} <= b.tools.keys()

    run(main)
    assert len(recorded(record, "tools/list")) < 10


def test_a_crashed_server_leaves_the_registry_and_comes_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            restart = RestartSpec(delay=1.0)
            await b.up(spec("echo", restart=restart))
            first = b.status("echo")
            assert first.pid is not None
            os.kill(first.pid, signal.SIGKILL)
            await until(lambda: b.status("echo").state is ServerState.CONNECTING)
            assert b.manager.changed.is_set()
            await b.apply()
            assert b.tools == {}
            fault = b.status("echo").fault
            assert fault is not None
            assert (fault.stage, fault.exit_code) == (Stage.EXIT, -signal.SIGKILL)
            assert (b.status("echo").attempt, b.status("echo").attempts) == (1, 5)
            await b.state("echo", CONNECTED)
            await b.apply()
            assert b.status("echo").pid != first.pid
            assert text(await b.call("echo__echo", {"text": "back"})) == "back"

    run(main)


def test_a_server_that_keeps_crashing_is_started_five_times_more_and_then_failed(
    tmp_path: Path,
) -> None:
    counter = tmp_path / "starts"

    async def main() -> None:
        async with bench(tmp_path) as b:
            args = ("--counter", counter, "--works", "1", "--code", "4")
            await b.up(spec("restart_breaks", *args, protocol="legacy"))
            pid = b.status("restart_breaks").pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            await b.state("restart_breaks", FAILED)
            tries = [s.attempt for _, s in b.times if s.state is ServerState.CONNECTING]
            assert tries == [0, 1, 2, 3, 4, 5]
            fault = b.status("restart_breaks").fault
            assert fault is not None
            assert fault.exit_code == 4
            assert "database" in fault.why

    run(main)
    assert counter.read_text() == "x" * 6


def test_the_waits_double_up_to_the_cap_and_start_anew_after_a_healthy_minute() -> None:
    backoff = Backoff(RestartSpec(max_attempts=7))
    waits = [backoff.next() for _ in range(8)]
    assert waits[-1] is None
    for wait, middle in zip(waits, (1, 2, 4, 8, 16, 30, 30), strict=False):
        assert wait is not None
        assert 0.8 * middle <= wait <= 1.2 * middle
    backoff.lived(59.0)
    assert backoff.next() is None
    backoff.lived(60.0)
    assert backoff.attempt == 0
    assert backoff.next() is not None
    assert Backoff(RestartSpec(enabled=False)).next() is None


def test_a_restart_has_the_new_one_up_before_the_old_one_goes(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo"))
            old = b.status("echo").pid
            assert old is not None
            running = asyncio.create_task(b.call("echo__sleep", {"seconds": 1.0}))
            await asyncio.sleep(0.1)
            await b.manager.restart("echo")
            assert psutil.pid_exists(old)
            assert b.status("echo").pid != old
            assert text(await b.call("echo__echo", {"text": "old"})) == "old"
            await b.apply()
            assert text(await b.call("echo__echo", {"text": "new"})) == "new"
            assert text(await running) == "slept"
            await until(lambda: not psutil.pid_exists(old))
            assert b.states("echo") == ["connecting", "connected", "draining", "connected"]

    run(main)


def test_a_failing_restart_keeps_the_old_one_and_says_why(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("restart_breaks", "--counter", tmp_path / "starts"))
            pid = b.status("restart_breaks").pid
            with pytest.raises(ServerError) as raised:
                await b.manager.restart("restart_breaks")
            assert raised.value.server == "restart_breaks"
            assert raised.value.exit_code == 4
            assert "it is locked" in raised.value.stderr[-1]
            await b.apply()
            assert b.status("restart_breaks").pid == pid
            assert text(await b.call("restart_breaks__echo", {"text": "here"})) == "here"

    run(main)


def test_a_restart_asked_for_twice_happens_once(tmp_path: Path) -> None:
    counter = tmp_path / "starts"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("restart_breaks", "--counter", counter, "--works", "9"))
            await asyncio.gather(*(b.manager.restart("restart_breaks") for _ in range(4)))
            assert counter.read_text() == "xx"
            await b.manager.restart("restart_breaks")
            assert counter.read_text() == "xxx"

    run(main)


def test_an_exclusive_server_is_stopped_before_its_successor_starts(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", restart=RestartSpec(exclusive=True)))
            old = b.status("echo").pid
            task = asyncio.create_task(b.manager.restart("echo"))
            await until(lambda: b.status("echo").state is not CONNECTED)
            await task
            assert old is not None
            assert not psutil.pid_exists(old)
            told = [event.what for event in b.events if isinstance(event, Noticed)]
            assert told == ["echo: the old server is stopped first, then the new one starts"]
            assert b.states("echo") == [
                "connecting",
                "connected",
                "stopped",
                "connecting",
                "connected",
            ]
            await b.apply()
            assert text(await b.call("echo__echo", {"text": "new"})) == "new"

    run(main)


def test_restarting_a_failed_server_tries_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            counter = ("--counter", tmp_path / "starts", "--works", "0", "--again", "3")
            await b.up(spec("restart_breaks", *counter, protocol="legacy", restart=NEVER))
            with pytest.raises(ServerError):
                await b.manager.restart("restart_breaks")
            assert b.status("restart_breaks").state is FAILED
            await b.manager.restart("restart_breaks")
            assert b.status("restart_breaks").state is CONNECTED

    run(main)


def test_an_unknown_server_is_answered_with_the_nearest_name(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo"))
            with pytest.raises(UsageError, match="Did you mean echo"):
                await b.manager.restart("ehco")
            with pytest.raises(UsageError):
                b.manager.log("nothing-like-it")
            with pytest.raises(UsageError):
                await b.manager.set_enabled("x", True)

    run(main)


def test_a_server_can_be_switched_off_and_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo"))
            pid = b.status("echo").pid
            running = asyncio.create_task(b.call("echo__sleep", {"seconds": 0.5}))
            await asyncio.sleep(0.1)
            await b.manager.set_enabled("echo", False)
            assert b.status("echo").state is ServerState.DISABLED
            await b.apply()
            assert b.tools == {}
            assert text(await running) == "slept"
            assert pid is not None
            await until(lambda: not psutil.pid_exists(pid))
            with pytest.raises(UsageError, match="disabled"):
                await b.manager.restart("echo")
            await b.manager.set_enabled("echo", True)
            await b.manager.settled()
            await b.apply()
            assert text(await b.call("echo__echo", {"text": "on"})) == "on"

    run(main)


def test_a_server_that_stops_answering_is_replaced_but_not_one_that_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kage.mcp.client.calling.talk.PING_LIMIT", 3.0)  # ten in earnest

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(
                ServerSpec(
                    name="silent",
                    command=sys.executable,
                    args=("-c", _FALLS_SILENT, str(Path(__file__).parents[3])),
                    health_interval=0.2,
                ),
                spec("echo", health_interval=0.2),
                spec("legacy24", health_interval=0.2),
            )
            busy = asyncio.create_task(b.call("echo__sleep", {"seconds": 4}))
            await b.state("silent", ServerState.CONNECTING)
            fault = b.status("silent").fault
            assert fault is not None
            assert fault.stage is Stage.PING
            assert text(await busy) == "slept"
            for name in ("echo", "legacy24"):
                assert b.states(name) == ["connecting", "connected"]

    run(main)


def test_health_checks_ask_what_the_revision_has(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(
                spec("legacy24", "--record", old, health_interval=0.1),
                spec("modern", "--record", new, health_interval=0.1),
            )
            await until(lambda: len(recorded(old, "ping")) > 1)
            await until(lambda: len(recorded(new, "server/discover")) > 2)

    run(main)
    assert recorded(new, "ping") == []


def test_everything_ends_at_once_whatever_servers_do(tmp_path: Path) -> None:
    children: list[psutil.Process] = []

    async def main() -> None:
        async with bench(tmp_path) as b:
            stubborn = [spec(f"deaf{n}", of="deaf") for n in range(3)]
            await b.up(*stubborn, spec("stops_reading"), spec("grandchild", "--deaf"))
            b.manager.start(
                [*stubborn, spec("stops_reading"), spec("grandchild", "--deaf"), spec("silent")]
            )
            calls = [
                asyncio.create_task(b.call("stops_reading__take", {"text": "x" * 1_000_000})),
            ]
            await asyncio.sleep(0.3)
            children.extend(psutil.Process().children(recursive=True))
            start = time.monotonic()
            await b.manager.stop()
            assert time.monotonic() - start < 18  # one takes 4 s; five in turn would take 20
            assert (await calls[0]).outcome is Outcome.UNKNOWN
            assert {s.state for s in b.manager.statuses()} == {ServerState.STOPPED}

    run(main)
    assert not [child for child in children if child.is_running()]


def test_fifty_servers_start_at_once_and_end_at_once_however_stubborn_ten_are(
    tmp_path: Path,
) -> None:
    children: list[psutil.Process] = []

    async def main() -> None:
        async with bench(tmp_path) as b:
            names = [("deaf" if n < 10 else "echo", f"s{n}") for n in range(50)]
            await b.up(*(spec(name, "--start-delay", "0.2", of=of) for of, name in names))
            assert {status.state for status in b.manager.statuses()} == {CONNECTED}
            children.extend(psutil.Process().children(recursive=True))
            start = time.monotonic()
            await b.manager.stop()
            # one deaf server takes 4 s; ten in turn would take 40
            assert time.monotonic() - start < 36

    run(main)
    assert len(children) >= 50
    assert not [child for child in children if child.is_running()]


def test_stopping_while_servers_connect_leaves_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            b.manager.start([spec("silent"), spec("slow"), spec("probe_deaf"), spec("echo")])
            await asyncio.sleep(0.05)
            await b.manager.stop()

    run(main)
    assert psutil.Process().children(recursive=True) == []


def test_a_new_set_of_entries_is_reconciled_step_by_step(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            kept, changed, removed = spec("echo"), spec("legacy24"), spec("media")
            await b.up(kept, changed, removed)
            pids = {status.name: status.pid for status in b.manager.statuses()}
            b.manager.start([kept, spec("legacy24", "--version", "2.0"), spec("modern")])
            await until(lambda: b.status("legacy24").version == "legacy24 2.0")
            await b.state("modern", CONNECTED)
            await b.apply()
            assert [status.name for status in b.manager.statuses()] == [
                "echo",
                "legacy24",
                "modern",
            ]
            assert b.status("echo").pid == pids["echo"]
            assert not [name for name in b.tools if name.startswith("media__")]
            assert "modern__echo" in b.tools

    run(main)


def test_steps_follow_from_two_sets_of_entries() -> None:
    a, b, c = (spec(name, of="echo") for name in "abc")
    off = spec("a", of="echo", disabled=True)
    steps = reconcile([a, b], [off, spec("b", "--version", "2", of="echo"), c])
    assert [(step.act, step.spec.name) for step in steps] == [
        (Act.DISABLE, "a"),
        (Act.RESTART, "b"),
        (Act.START, "c"),
    ]
    assert [step.act for step in reconcile([off], [a])] == [Act.START]
    assert [step.act for step in reconcile([a, b], [a])] == [Act.STOP, Act.KEEP]
    assert [step.act for step in reconcile([a], [a])] == [Act.KEEP]


def test_the_log_and_instructions_of_a_server_can_be_read(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            long = "é" * 3000
            await b.up(
                spec("noisy", "--lines", "5"),
                spec("echo", "--instructions", long),
                spec("legacy24", "--instructions", "kept away", instructions=False),
            )
            await until(lambda: b.manager.log("noisy"))
            [(name, words)] = b.manager.instructions()
            assert name == "echo"
            assert words.startswith("ééé")
            assert len(words.encode()) <= 2048
            assert b.manager.offers("echo") == {
                "capabilities": {"tools": {"listChanged": True}, "logging": {}},
                "prompts": [],
                "resources": [],
                "templates": [],
            }

    run(main)


def test_stray_lines_are_counted_and_cost_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("banner"))
            assert b.status("banner").state is CONNECTED
            assert b.status("banner").stray_lines > 0

    run(main)


def test_every_change_of_state_is_published_with_the_one_before(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo"))
            await b.manager.stop()
            changes = [
                (event.previous, event.status.state)
                for event in b.events
                if isinstance(event, ServerChanged)
            ]
            assert changes == [
                (None, ServerState.CONNECTING),
                (ServerState.CONNECTING, CONNECTED),
                (CONNECTED, ServerState.STOPPED),
            ]

    run(main)


def test_the_sdk_is_not_imported_before_a_server_starts() -> None:
    code = "import sys, kage.mcp.client.manager; print({'mcp', 'pydantic'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
