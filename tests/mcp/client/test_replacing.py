"""Replacing servers: what a new entry costs, what goes on meanwhile, and a storm of it."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.config.schema import RestartSpec, ServerSpec
from kage.core.errors import ServerError
from kage.core.messages import Outcome
from kage.core.servers import Fault, ServerState, Stage
from kage.mcp.client.connections.connection import Connection
from kage.mcp.client.servers.reconcile import ADJUSTABLE, Act, reconcile
from tests.mcp.client.harness import Bench, TestClock, bench, recorded, run, spec, text
from tests.stubs import stub
from tests.waiting import until

CONNECTED = ServerState.CONNECTED


def test_every_adjustable_setting_exists_and_keeps_the_process() -> None:
    fields = {field.name: field for field in dataclasses.fields(ServerSpec)}
    assert fields.keys() >= ADJUSTABLE
    old = spec("echo")
    for name in ADJUSTABLE - {"place"}:
        assert _act(old, name) is Act.ADJUST, name
    for name in fields.keys() - ADJUSTABLE - {"name", "disabled"}:
        assert _act(old, name) is Act.RESTART, name


def _act(old: ServerSpec, changed: str) -> Act:
    more: dict[str, Any] = {changed: "another value"}
    [step] = reconcile([old], [dataclasses.replace(old, **more)])
    return step.act


_ENTRIES = st.dictionaries(
    st.sampled_from("abcd"),
    st.builds(
        ServerSpec,
        name=st.just("x"),
        command=st.sampled_from(["one", "two"]),
        timeout=st.sampled_from([1.0, 2.0]),
        disabled=st.booleans(),
    ),
)


@given(before=_ENTRIES, after=_ENTRIES)
def test_the_steps_lead_from_any_entries_to_any_others(
    before: dict[str, ServerSpec], after: dict[str, ServerSpec]
) -> None:
    old = [dataclasses.replace(entry, name=name) for name, entry in before.items()]
    new = [dataclasses.replace(entry, name=name) for name, entry in after.items()]
    steps = reconcile(old, new)
    kept = {step.spec.name: step for step in steps if step.act is not Act.STOP}
    stopped = {step.spec.name for step in steps if step.act is Act.STOP}
    assert [step.spec for step in steps if step.act is not Act.STOP] == new
    assert stopped == before.keys() - after.keys()
    running = {entry.name: entry.command for entry in old if not entry.disabled}
    for name, step in kept.items():
        match step.act:
            case Act.START | Act.RESTART:
                running[name] = step.spec.command
            case Act.DISABLE:
                running.pop(name, None)
    for name in stopped:
        running.pop(name, None)
    assert running == {entry.name: entry.command for entry in new if not entry.disabled}
    assert all(step.act is Act.KEEP for step in reconcile(new, new))


def test_other_settings_are_in_force_from_the_next_boundary_without_a_restart(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", tool_timeout=30.0))
            pid = b.status("echo").pid
            running = asyncio.create_task(b.call("echo__sleep", {"seconds": 0.6}))
            await asyncio.sleep(0.1)
            b.manager.start(
                [spec("echo", tool_timeout=0.2, disabled_tools=("fail",), max_parallel_calls=2)]
            )
            assert "echo__fail" in b.tools
            assert await b.apply() == ["echo"]
            assert "echo__fail" not in b.tools
            assert text(await running) == "slept"  # it keeps the limit it began with
            late = await b.call("echo__sleep", {"seconds": 5})
            assert late.outcome is Outcome.UNKNOWN
            assert "limit 0.2 s" in text(late)
            assert b.status("echo").pid == pid
            assert b.states("echo") == ["connecting", "connected"]
            # what changed of its filters only is told as well
            b.manager.start([spec("echo", tool_timeout=0.2)])
            assert await b.apply() == ["echo"]
            assert "echo__fail" in b.tools

    run(main)


def test_an_entry_that_is_gone_serves_until_the_boundary_and_ends_after_its_calls(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo"), spec("legacy24"))
            pid = b.status("echo").pid
            assert pid is not None
            b.manager.start([spec("legacy24")])
            assert [status.name for status in b.manager.statuses()] == ["legacy24"]
            running = asyncio.create_task(b.call("echo__sleep", {"seconds": 0.5}))
            await asyncio.sleep(0.1)
            assert text(await b.call("echo__echo", {"text": "still"})) == "still"
            assert await b.apply() == ["echo"]
            assert not [name for name in b.tools if name.startswith("echo__")]
            assert text(await running) == "slept"
            await until(lambda: not psutil.pid_exists(pid))
            b.manager.start([spec("legacy24"), spec("echo")])  # and it can come back
            await b.manager.settled()
            await b.apply()
            assert text(await b.call("echo__echo", {"text": "new"})) == "new"

    run(main)


def test_what_a_person_switched_for_this_session_survives_a_reload(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            off = spec("legacy24", disabled=True)
            await b.up(spec("echo"), off)
            await b.manager.set_enabled("echo", False)
            await b.manager.set_enabled("legacy24", True)
            await b.manager.settled()
            b.manager.start([spec("echo"), off, spec("modern")])
            b.manager.start([spec("echo", "--version", "2"), off, spec("modern")])
            await b.state("modern", CONNECTED)
            assert b.status("echo").state is ServerState.DISABLED
            assert b.status("legacy24").state is CONNECTED
            await b.manager.set_enabled("echo", True)
            await b.state("echo", CONNECTED)
            assert b.status("echo").version == "echo 2"

    run(main)


def test_a_bad_edit_of_an_entry_keeps_the_old_one_serving(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo"))
            pid = b.status("echo").pid
            b.manager.start([ServerSpec(name="echo", command="no-such-command-anywhere")])
            await until(lambda: any("the old one serves on" in str(e) for e in b.events))
            await b.apply()
            assert b.status("echo").pid == pid
            assert text(await b.call("echo__echo", {"text": "here"})) == "here"

    run(main)


class Hears:
    """A connection whose server answers pings as the test says, None: never."""

    def __init__(self, misses: int, entry: ServerSpec) -> None:
        self.misses = misses
        self.open_calls = 0
        self.notifies = False
        self.closed = asyncio.Event()
        self.asked: list[asyncio.Future[bool]] = []
        self.recipe = type("R", (), {"spec": entry})

    async def ping(self) -> bool:
        self.asked.append(asyncio.get_running_loop().create_future())
        return await self.asked[-1]

    def fail(self, fault: object) -> None:
        self.closed.set()


@pytest.mark.parametrize("misses", [1, 2])
def test_a_server_is_given_up_after_so_many_unanswered_pings_in_a_row(misses: int) -> None:
    from kage.mcp.client.servers.tending import Tending

    async def main() -> None:
        clock = TestClock()
        tending = Tending(clock, listed=lambda: None, unlisted=lambda fault: None)
        heard = Hears(misses, ServerSpec(name="x", health_interval=30.0))
        task = asyncio.create_task(tending.run(_as_connection(heard)))

        async def interval() -> None:
            await until(lambda: clock.waiting)
            clock.advance(30)
            await asyncio.sleep(0.01)

        await interval()
        heard.asked[-1].set_result(True)
        await asyncio.sleep(0.01)
        await interval()
        heard.asked[-1].set_result(False)  # one miss
        await asyncio.sleep(0.01)
        assert heard.closed.is_set() is (misses == 1)
        if misses == 2:
            await interval()
            heard.asked[-1].set_result(True)  # it is well: the count begins anew
            heard.open_calls = 1
            asked = len(heard.asked)
            await interval()
            assert len(heard.asked) == asked  # a busy server is not asked
            heard.open_calls = 0
            for _ in range(2):  # the second question goes out while the first waits
                await interval()
            for future in heard.asked[-2:]:
                future.set_result(False)
        await until(heard.closed.is_set)
        await task

    run(main)


def _as_connection(heard: Hears) -> Connection:
    return heard  # type: ignore[return-value]  # what Tending needs of one


def test_no_health_interval_means_no_ping(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        clock = TestClock()
        async with bench(tmp_path, clock=clock) as b:
            await b.up(spec("legacy24", "--record", record, health_interval=0))
            assert clock.waiting == []
            b.manager.start([spec("legacy24", "--record", record, health_interval=5.0)])
            await b.apply()
            await until(lambda: clock.waiting == [5.0])
            clock.advance(5)
            await until(lambda: recorded(record, "ping"))

    run(main)


def _is_version(b: Bench, number: int) -> bool:
    return b.status("echo").version == f"echo {number}"


def test_a_storm_of_replacements_loses_and_doubles_no_call(tmp_path: Path) -> None:
    """SPEC 3.1: 20 good and 20 broken replacements while calls are in flight."""
    record = tmp_path / "record"
    pids: set[int] = set()

    async def main() -> None:
        async with bench(tmp_path) as b:
            restart = RestartSpec(delay=0.05, max_delay=0.05)

            def entry(version: str) -> ServerSpec:
                return spec(
                    "echo",
                    "--record",
                    record,
                    "--version",
                    version,
                    restart=restart,
                    max_parallel_calls=64,
                )

            await b.up(entry("0"))
            done: list[tuple[int, str]] = []

            async def one(number: int) -> None:
                called = await b.call("echo__echo", {"text": f"call {number}"})
                done.append((number, text(called)))

            async def keep_calling() -> None:
                for start in range(0, 200, 10):
                    slow = asyncio.create_task(b.call("echo__sleep", {"seconds": 0.3}))
                    await asyncio.gather(*(one(start + n) for n in range(10)))
                    assert text(await slow) == "slept"

            calling = asyncio.create_task(keep_calling())
            for number in range(1, 21):
                good = entry(str(number))
                bad = dataclasses.replace(good, args=(*good.args[:-1], "x"), command="/nowhere/x")
                b.manager.start([bad])
                with pytest.raises(ServerError):
                    await b.manager.restart("echo")
                b.manager.start([good])
                await until(partial(_is_version, b, number))
                pids.add(b.status("echo").pid or 0)
                await b.apply()
            await calling
            assert sorted(done) == [(n, f"call {n}") for n in range(200)]

    run(main)
    assert len(pids) == 20
    sent = [m["params"]["arguments"].get("text") for m in recorded(record, "tools/call")]
    assert sorted(filter(None, sent)) == sorted(f"call {n}" for n in range(200))
    assert not [pid for pid in pids if psutil.pid_exists(pid)]


def _slow_second(tmp_path: Path, **more: Any) -> ServerSpec:
    """Give an entry whose first start is quick and whose later ones take long."""
    first = tmp_path / "started"
    quick, slow = stub("slow", "--delay", 0), stub("slow", "--delay", 30)
    script = f'[ -e "{first}" ] && exec {shlex.join(slow)}; : > "{first}"; exec {shlex.join(quick)}'
    return ServerSpec(name="slow", command="/bin/sh", args=("-c", script), timeout=60.0, **more)


@pytest.mark.parametrize("removed", [False, True])
def test_a_server_switched_off_or_removed_while_it_restarts_stays_so(
    tmp_path: Path, removed: bool
) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            entry = _slow_second(tmp_path)
            await b.up(entry)
            old = b.status("slow").pid
            assert old is not None
            restarting = asyncio.create_task(b.manager.restart("slow"))
            await until(lambda: len(psutil.Process(os.getpid()).children(recursive=True)) >= 3)
            b.manager.start([] if removed else [dataclasses.replace(entry, disabled=True)])
            with pytest.raises(ServerError, match="restart"):  # whoever waits is told
                await asyncio.wait_for(restarting, 10)
            if not removed:
                await b.state("slow", ServerState.DISABLED)
            await b.apply()
            await until(lambda: not psutil.pid_exists(old))
            assert not b.tools
            family = psutil.Process(os.getpid())
            await until(lambda: len(family.children(recursive=True)) <= 1)  # the watchdog
            assert removed or b.states("slow")[-1] == "disabled"

    run(main)


def test_switching_on_a_server_that_waits_for_a_sign_in_starts_no_second_one(
    tmp_path: Path,
) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", "--record", record))
            pid = b.status("echo").pid
            b.manager._fleet.get("echo").sign_in(Fault(stage=Stage.CALL, what="sign in first"))
            await b.manager.set_enabled("echo", True)
            await until(lambda: b.status("echo").pid not in (None, pid))
            await b.state("echo", CONNECTED)
            assert pid is not None
            await until(lambda: not psutil.pid_exists(pid))
            await b.apply()
            assert text(await b.call("echo__echo", {"text": "new"})) == "new"

    run(main)


def test_a_failure_quotes_what_the_last_try_said_and_not_those_before(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            restart = RestartSpec(delay=0.01, max_delay=0.02, max_attempts=2)
            b.manager.start([spec("exits", "--lines", 3, restart=restart)])
            await b.state("exits", ServerState.FAILED)
            fault = b.status("exits").fault
            assert fault is not None and len(fault.stderr) == 3
            assert len(b.manager.log("exits")) >= 9  # the pane has them all

    run(main)
